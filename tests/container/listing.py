"""Everything on a host's file system, so that a run that must write nothing can be held to it.

Run on the host with its own python3. Times of change are listed too: a file that was written and
removed again shows in its folder.
"""

import json

from tests.container.host import Host

# What a running system writes without anybody's doing, and other file systems.
LEFT_OUT = (
    *("/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"),
    *("/var/log/journal", "/var/log/wtmp", "/var/log/btmp", "/var/log/lastlog"),
    *("/var/lib/systemd", "/var/cache/pip"),
)

_PROGRAM = """
import hashlib, json, os, stat, sys
left_out = set(json.loads(sys.argv[1]))
def entry(path):
    found = os.lstat(path)
    facts = [oct(found.st_mode), found.st_uid, found.st_gid, found.st_mtime_ns]
    if stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            facts.append(hashlib.file_digest(file, "sha256").hexdigest())
    elif stat.S_ISLNK(found.st_mode):
        facts.append(os.readlink(path))
    return facts
listing = {}
for folder, folders, files in os.walk("/"):
    paths = {name: os.path.join(folder, name) for name in folders + files}
    folders[:] = [n for n in folders if paths[n] not in left_out and not os.path.ismount(paths[n])]
    for name in folders + files:
        if paths[name] not in left_out and not os.path.ismount(paths[name]):
            listing[paths[name]] = entry(paths[name])
json.dump(listing, sys.stdout)
"""


def take(host: Host) -> dict[str, list[object]]:
    """Return {path: [mode, owner, group, time of change in ns, digest or link target]}."""
    output = host.engine.run(
        "exec", host.name, "python3", "-B", "-I", "-c", _PROGRAM, json.dumps(LEFT_OUT)
    )
    found: dict[str, list[object]] = json.loads(output)
    return found


def differences(
    before: dict[str, list[object]], after: dict[str, list[object]]
) -> dict[str, tuple[object, object]]:
    """Return {path: (before, after)} of what differs; None stands for absent."""
    return {
        path: (before.get(path), after.get(path))
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }
