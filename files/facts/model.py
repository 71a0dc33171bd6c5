"""Print the state of a checkpoint, as JSON. Argument: its directory.

Small files, and files whose time changed, are read and compared with the digest in the manifest;
the weights are several GB and are read again only where size or time say that they were touched.
"""

import hashlib
import json
import os
import sys

ALWAYS_READ = 64 * 1024 * 1024  # bytes; smaller files are always read
MOST_FAULTS = 5


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fault_of(path, known):
    """Return what is wrong with a file, or None."""
    try:
        status = os.stat(path)
    except OSError:
        return "is missing"
    if status.st_size != known["size"]:
        return f"has {status.st_size} bytes, wanted {known['size']}"
    untouched = status.st_mtime_ns == known["mtime_ns"]
    if status.st_size > ALWAYS_READ and untouched:
        return None
    return None if sha256(path) == known["sha256"] else "differs in content"


def main(directory):
    try:
        with open(directory + ".manifest.json") as file:
            manifest = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    faults = []
    for name, known in sorted(manifest["files"].items()):
        if fault := fault_of(os.path.join(directory, name), known):
            faults.append(f"{name} {fault}")
    return {
        "identity": manifest["identity"],
        "faults": faults[:MOST_FAULTS],
        "fault_count": len(faults),
    }


print(json.dumps(main(*sys.argv[1:])))
