"""Print what systemd knows of each unit given, and whether its file is there, as JSON."""

import json
import os
import subprocess
import sys

PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload")


def describe(unit):
    show = ["systemctl", "show", "--property", ",".join(PROPERTIES), "--", unit]
    try:
        shown = subprocess.run(show, capture_output=True, text=True, check=False).stdout
    except OSError:
        shown = ""  # no systemd: nothing runs by it
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    return {**found, "file": os.path.lexists(f"/etc/systemd/system/{unit}")}


print(json.dumps({unit: describe(unit) for unit in sys.argv[1:]}))
