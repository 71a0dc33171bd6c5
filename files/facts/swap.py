"""Print memory, and what is known of one swap file, as JSON."""

import json
import os
import stat
import sys


def memory_bytes():
    with open("/proc/meminfo") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["MemTotal"].split()[0]) * 1024


def active_bytes(path):
    """Return the size of the swap area that is in use from this file, or None."""
    with open("/proc/swaps") as file:
        rows = [line.split() for line in file][1:]
    sizes = [int(row[-3]) * 1024 for row in rows if row[0] == path]  # the kernel escapes blanks
    return sizes[0] if sizes else None


def describe(path):
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    regular = stat.S_ISREG(status.st_mode)
    return {
        "regular": regular,
        "bytes": status.st_size,
        "allocated": status.st_blocks * 512,
        "mode": format(stat.S_IMODE(status.st_mode), "o"),
        "owner": status.st_uid,
        "formatted": regular and has_signature(path),
    }


def has_signature(path):
    """mkswap writes it at the end of the first page [util-linux: swapheader.h]."""
    with open(path, "rb") as file:
        return file.read(os.sysconf("SC_PAGE_SIZE")).endswith(b"SWAPSPACE2")


def fstab():
    try:
        with open("/etc/fstab") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def free_bytes(path):
    usage = os.statvfs(os.path.dirname(path) or "/")
    return usage.f_bavail * usage.f_frsize


(path,) = sys.argv[1:]
print(
    json.dumps(
        {
            "memory": memory_bytes(),
            "file": describe(path),
            "active": active_bytes(path),
            "fstab": fstab(),
            "free": free_bytes(path),
        }
    )
)
