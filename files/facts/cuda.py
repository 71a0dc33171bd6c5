"""Print what this host has of the CUDA toolkit and of NVIDIA's repository, as JSON.

Argument: JSON with `package`, `home` and `files` (relative to `home`, which make a toolkit whole).
With `mark` (text by which an apt source of the repository is known) and `keyring_version` the
answer is about the repository, else about what an installation of the toolkit would do.
"""

import glob
import grp
import hashlib
import json
import os
import pwd
import re
import stat
import subprocess
import sys

SOURCES = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list"]
SOURCES += ["/etc/apt/sources.list.d/*.sources"]
KEYRING_PACKAGE = "cuda-keyring"
KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"
# apt writes its caches anew where they are stale; a question must not write.
SIMULATION = ["apt-get", "-o=Dir::Cache::pkgcache=", "-o=Dir::Cache::srcpkgcache=", "--simulate"]
SIMULATION += ["--no-install-recommends", "install"]
PUBLIC_KEY = 6  # packet tag [RFC 9580, section 5]


def output(*command):
    """Return a command's output; empty where it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def release():
    with open("/etc/os-release") as file:
        fields = dict(line.strip().split("=", 1) for line in file if "=" in line)
    return {key: fields.get(key, "").strip('"') for key in ("ID", "VERSION_ID")}


def sources(mark):
    found = {}
    for path in sorted(path for pattern in SOURCES for path in glob.glob(pattern)):
        with open(path, "rb") as file:
            content = file.read()
        if mark.encode() in content:
            found[path] = describe(path, content)
    return found


def describe(path, content):
    status = os.stat(path)
    return {
        "kind": "file",
        "mode": format(stat.S_IMODE(status.st_mode), "o"),
        "user": pwd.getpwuid(status.st_uid).pw_name,
        "group": grp.getgrgid(status.st_gid).gr_name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "content": content.decode("utf-8", "replace"),
    }


def packets(data):
    """Yield tag and body of each OpenPGP packet [RFC 9580, section 4.2], as long as they are whole.

    A body of partial or indeterminate length, which no key has, ends it too.
    """
    at = 0
    while at < len(data) and data[at] & 0x80:
        new_format = data[at] & 0x40
        tag = data[at] & 0x3F if new_format else (data[at] >> 2) & 0xF
        start, size = (new_length if new_format else old_length)(data, at)
        if size is None or start + size > len(data):
            return
        yield tag, data[start : start + size]
        at = start + size


def old_length(data, at):
    """Return where the body starts and its size, for a header whose first byte has the width."""
    width = (1, 2, 4, 0)[data[at] & 3]
    size = int.from_bytes(data[at + 1 : at + 1 + width], "big") if width else None
    return at + 1 + width, size


def new_length(data, at):
    """Return where the body starts and its size, for a header whose second byte has the width."""
    octets = data[at + 1 : at + 6]
    if octets[:1] < b"\xc0":
        return at + 2, octets[0] if octets else None
    if octets[0] < 224:
        return at + 3, ((octets[0] - 192) << 8) + octets[1] + 192 if len(octets) > 1 else None
    return at + 6, int.from_bytes(octets[1:], "big") if octets[0] == 255 else None


def fingerprints(keyring):
    """Return the fingerprints of the version 4 primary keys in a keyring, as upper-case hex."""
    keys = [body for tag, body in packets(keyring) if tag == PUBLIC_KEY and body[:1] == b"\4"]
    framed = [b"\x99" + len(key).to_bytes(2, "big") + key for key in keys]
    return [hashlib.sha1(key).hexdigest().upper() for key in framed]


def content(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def installed(package):
    fields = output("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package).split()
    return fields[1] if fields[:1] == ["installed"] else None


def older(version, wanted):
    return bool(version) and not subprocess.call(
        ["dpkg", "--compare-versions", version, "lt", wanted]
    )


def owners(paths):
    """Return the packages that should have brought these paths."""
    listed = [output("dpkg-query", "-S", os.path.realpath(path)) for path in paths]
    return sorted({line.split(":")[0] for text in listed for line in text.splitlines()})


def toolkit(package, home, files):
    nvcc = os.path.join(home, "bin", "nvcc")
    version = re.search(r"release ([\d.]+)", output(nvcc, "--version"))
    missing = [file for file in files if not os.path.exists(os.path.join(home, file))]
    broken = [os.path.join(home, file) for file in missing] + ([] if version else [nvcc])
    return {
        "installed": installed(package),
        "nvcc": version.group(1) if version else None,
        "missing": missing,
        "owners": owners(broken),
    }


def repository(mark, keyring_version):
    keyring = installed(KEYRING_PACKAGE)
    return {
        "architecture": output("dpkg", "--print-architecture").strip(),
        "release": release(),
        "sources": sources(mark),
        "keyring": keyring,
        "keyring_is_older": older(keyring, keyring_version),
        "fingerprints": fingerprints(content(KEYRING)),
    }


def simulated(package):
    """Return the packages that installing would touch; None where apt cannot tell yet."""
    text = output(*SIMULATION, "--", package)
    return re.findall(r"^(?:Inst|Remv) (\S+)", text, re.MULTILINE) or None


def main(asked):
    package = asked["package"]
    found = {"toolkit": toolkit(package, asked["home"], asked["files"])}
    if "mark" in asked:
        found.update(repository(asked["mark"], asked["keyring_version"]))
    else:
        is_whole = found["toolkit"]["nvcc"] == asked["release"] and not found["toolkit"]["missing"]
        usage = os.statvfs("/usr/local")
        found["touches"] = None if is_whole else simulated(package)
        found["free"] = usage.f_bavail * usage.f_frsize
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
