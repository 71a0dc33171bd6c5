"""Print the state of a file that holds one secret, as JSON; the secret itself is never printed.

Arguments: path, the variable that it must set, and, where a unit writes it, the unit's file.
"""

import grp
import hashlib
import json
import os
import pwd
import re
import stat
import subprocess
import sys

PROPERTIES = "LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,Result"


def unit_state(unit):
    """Return systemd's view of the unit; LoadState is not-found where it knows none."""
    shown = subprocess.run(
        ["systemctl", "show", "--property", PROPERTIES, unit], capture_output=True, text=True
    )
    pairs = (line.partition("=") for line in shown.stdout.splitlines())
    return {"LoadState": "not-found"} | {name: value for name, _, value in pairs}


def name_of(lookup, number):
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)


def file_state(path, variable):
    try:
        status = os.lstat(path)
    except OSError:
        return {"present": False}
    if not stat.S_ISREG(status.st_mode):
        return {"present": True, "good": False, "mode": "", "owner": "", "comments": []}
    with open(path, errors="replace") as file:
        lines = file.read().splitlines()
    comments = [line[1:].strip() for line in lines if line.startswith("#")]
    assignments = [line for line in lines if line and not line.startswith("#")]
    good = len(assignments) == 1 and re.fullmatch(variable + '="?[!-~]+', assignments[0])
    return {
        "present": True,
        "good": bool(good),
        "mode": f"{stat.S_IMODE(status.st_mode):o}",
        "owner": f"{name_of(pwd.getpwuid, status.st_uid)}:{name_of(grp.getgrgid, status.st_gid)}",
        "comments": comments,
    }


def digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


path, variable, *units = sys.argv[1:]
found = {"file": file_state(path, variable), "unit": {}, "unit_sha256": ""}
for unit in units:
    found["unit"], found["unit_sha256"] = unit_state(os.path.basename(unit)), digest(unit)
print(json.dumps(found))
