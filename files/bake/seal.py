"""Take out of this host what must not travel in an image of it, or say what of that is there.

`seal.py state` prints JSON and writes nothing. `seal.py seal` removes and then looks again: exit
status 1, and one line a path, if anything is left. Runs as root, with the service stopped.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

HOMES = ("/root", "/home/*")

# What makes this machine this machine. cloud-init and systemd make all of it anew at first boot.
IDENTITY = (
    "/etc/ssh/ssh_host_*",
    "/var/lib/amazon/ssm/Vault",  # the agent's registration; it registers anew [untested]
    "/var/lib/cloud/data/*",
    "/var/lib/cloud/instance",
    "/var/lib/cloud/instances/*",
    "/var/lib/cloud/sem/*",
    "/var/lib/vllm-g5g/prewarm.json",  # names the machine that has read its volume
    "/var/lib/systemd/credential.secret",
    "/var/lib/systemd/random-seed",
)
# Emptied, not removed: without the file systemd takes the boot for a first one and resets which
# units are enabled.
MACHINE_ID = "/etc/machine-id"

SECRETS = (
    "/etc/vllm-g5g/api-key.env",
    "/var/cache/vllm-g5g/huggingface/token",
    "/var/cache/vllm-g5g/huggingface/stored_tokens",
    "/var/lib/vllm-g5g/.cache/huggingface/token",
    "/var/lib/vllm-g5g/.cache/huggingface/stored_tokens",
    *(
        f"{home}/{name}"
        for home in HOMES
        for name in (
            ".aws",
            ".cache/huggingface/token",
            ".cache/huggingface/stored_tokens",
            ".docker/config.json",
            ".git-credentials",
            ".netrc",
            ".ssh/authorized_keys",
            ".ssh/id_*",
        )
    ),
)
HISTORIES = tuple(
    f"{home}/{name}"
    for home in HOMES
    for name in (".bash_history", ".lesshst", ".python_history", ".viminfo", ".wget-hsts")
)
# What a running system makes again at once: removed, but no fault if it is there later.
PASSING = (
    "/root/.cache/pip",
    "/home/*/.cache/pip",
    "/tmp/*",
    "/tmp/.[!.]*",
    "/var/cache/apt/archives/*.deb",
    "/var/lib/amazon/ssm/i-*",  # what Run Command and sessions were told
    "/var/log/amazon/ssm/*",
    "/var/log/auth.log*",
    "/var/log/cloud-init*.log",
    "/var/log/journal/*",
    "/var/log/syslog*",
    "/var/tmp/*",
)
IN_USE = "systemd-private-"  # /tmp and /var/tmp of services that run

# A token of the model hub, or an access key of AWS, in a small file where people leave such things.
TOKEN = re.compile(rb"\b(hf_[A-Za-z0-9]{30,}|(AKIA|ASIA)[A-Z0-9]{16})\b")
SEARCHED = ("/etc", "/root", "/home")
SMALL = 1 << 20


def lasting(root: str) -> list[str]:
    """Return what must be gone before an image is taken, sorted."""
    found = [path for pattern in IDENTITY + SECRETS + HISTORIES for path in _glob(root, pattern)]
    machine_id = root + MACHINE_ID
    if os.path.exists(machine_id) and os.path.getsize(machine_id):
        found.append(machine_id)
    return sorted(found)


def passing(root: str) -> list[str]:
    found = [path for pattern in PASSING for path in _glob(root, pattern)]
    return sorted(path for path in found if not os.path.basename(path).startswith(IN_USE))


def tokens(root: str) -> list[str]:
    """Return the small files that hold what looks like a token; never the token itself."""
    found: list[str] = []
    for top in SEARCHED:
        for folder, _, names in os.walk(root + top):
            paths = [os.path.join(folder, name) for name in names]
            found += [path for path in paths if _holds_token(path)]
    return sorted(found)


def _holds_token(path: str) -> bool:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > SMALL:
            return False
        with open(path, "rb") as file:
            return bool(TOKEN.search(file.read()))
    except OSError:
        return False


def _glob(root: str, pattern: str) -> list[str]:
    return glob.glob(root + pattern)


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def seal(root: str) -> None:
    """Remove all of it, and blank the swap files, which hold pages of whoever ran."""
    for path in swap_files(root):
        blank(path, root)
    for path in lasting(root) + passing(root):
        if path == root + MACHINE_ID:
            os.truncate(path, 0)
        else:
            remove(path)


def swap_files(root: str) -> list[str]:
    """Return the swap files that this host switches on at boot.

    /proc/swaps would not do: in a container it lists what the machine around it uses.
    """
    try:
        with open(root + "/etc/fstab") as file:
            rows = [line.split("#")[0].split() for line in file]
    except FileNotFoundError:
        return []
    paths = [root + row[0] for row in rows if len(row) > 2 and row[2] == "swap"]
    return [path for path in paths if os.path.isfile(path)]


def blank(path: str, root: str) -> None:
    """Overwrite a swap file with zeros, in place so that it has no holes, and format it again.

    It stays off: it is in fstab, and the next boot switches it on.
    """
    with open(root + "/proc/swaps") as file:
        active = [line.split()[0] for line in file]
    if path in active:
        subprocess.run(["swapoff", path], check=True)
    left = os.path.getsize(path)
    zeros = bytes(1 << 20)
    with open(path, "r+b") as file:
        while left:
            left -= file.write(zeros[:left])
        file.flush()
        os.fsync(file.fileno())
    subprocess.run(["mkswap", path], check=True, stdout=subprocess.DEVNULL)


def kept_tokens(root: str) -> list[str]:
    """Return the files with tokens that sealing does not remove: somebody has to look at them."""
    removed = lasting(root) + passing(root)
    return [
        path
        for path in tokens(root)
        if not any(path == gone or path.startswith(gone + "/") for gone in removed)
    ]


def main(verb: str, root: str = "") -> int:
    if verb == "seal":
        try:
            seal(root)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"not sealed: {error}; mend that, then bake again", file=sys.stderr)
            return 1
    left = lasting(root)
    leaks = kept_tokens(root)
    if verb == "state":
        print(json.dumps({"left": left, "tokens": leaks}))
        return 0
    for path in left:
        print(f"not removed: {path}", file=sys.stderr)
    for path in leaks:
        print(f"looks like a token: {path}; take it out, then bake again", file=sys.stderr)
    return 1 if left or leaks else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
