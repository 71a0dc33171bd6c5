"""Print the state of the vLLM build, as JSON; run by the serving interpreter.

Arguments: the stamp's path, the build's unit. Every installed file that was touched since the stamp
was written is checked against the digest that pip recorded, so a deleted library and an edited
module are both seen.
"""

import base64
import csv
import glob
import hashlib
import json
import os
import platform
import subprocess
import sys

MOST_DAMAGED = 5  # named; the count tells the rest


def read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return None


def directory_of(name):
    """Return where a distribution has its metadata; "" where it is not installed.

    importlib.metadata tells it too, but takes 60 ms to import and as long for our 6,000 files
    (measured).
    """
    for site in sys.path:  # the first found is the one that is imported
        for found in glob.glob(f"{name}-*.dist-info/METADATA", root_dir=site):
            return os.path.join(site, os.path.dirname(found))
    return ""


def version_of(name):
    directory = directory_of(name)
    if not directory:
        return ""
    with open(os.path.join(directory, "METADATA")) as file:
        return next((line.split()[1] for line in file if line.startswith("Version: ")), "")


def written_at(path):
    """Return when a file was written, in ns; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def is_damaged(path, recorded, since):
    """Return whether a file differs from what RECORD says of it, as in `sha256=5dL0...`."""
    try:
        # Nothing but the kernel sets this time, and it does so for whatever changes a file.
        if os.stat(path).st_ctime_ns < since:
            return False
        algorithm, _, wanted = recorded.partition("=")
        with open(path, "rb") as content:
            digest = hashlib.new(algorithm, content.read()).digest()
    except OSError:
        return True
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != wanted


def damaged_files(since):
    directory = directory_of("vllm")
    if not directory:
        return []
    site = os.path.dirname(directory)
    try:
        with open(os.path.join(directory, "RECORD"), newline="") as file:
            rows = [row[:2] for row in csv.reader(file)]
    except OSError:
        return [f"{os.path.basename(directory)}/RECORD"]
    # Compiled bytecode and RECORD itself have no digest.
    return [path for path, hash in rows if hash and is_damaged(f"{site}/{path}", hash, since)]


def is_running(unit):
    command = ("systemctl", "show", unit, "--property=ActiveState", "--value")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() in ("active", "activating", "deactivating", "reloading")


def main(stamp, unit):
    damaged = damaged_files(written_at(stamp))
    return {
        "stamp": read_json(stamp),
        "running": is_running(unit),
        "installed": version_of("vllm"),
        "damaged": damaged[:MOST_DAMAGED],
        "damaged_count": len(damaged),
        "torch": version_of("torch"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }


print(json.dumps(main(*sys.argv[1:])))
