"""Print the state of the vLLM build, as JSON; run by the serving interpreter.

Arguments: the stamp's path, the build's unit. Every installed file that was touched since the stamp
was written is checked against the digest that pip recorded, so a deleted library and an edited
module are both seen.
"""

import base64
import hashlib
import importlib.metadata as metadata
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


def version_of(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def written_at(path):
    """Return when a file was written, in ns; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def is_damaged(file, since):
    if file.hash is None:  # compiled bytecode and RECORD itself have none
        return False
    try:
        # Nothing but the kernel sets this time, and it does so for whatever changes a file.
        if os.stat(file.locate()).st_ctime_ns < since:
            return False
        with open(file.locate(), "rb") as content:
            digest = hashlib.new(file.hash.mode, content.read()).digest()
    except OSError:
        return True
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value


def damaged_files(since):
    try:
        files = metadata.distribution("vllm").files or []
    except metadata.PackageNotFoundError:
        return []
    return [str(file) for file in files if is_damaged(file, since)]


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
