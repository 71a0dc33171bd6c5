"""Print how systemd sees a unit, and digests of files, as JSON.

Arguments: the unit, then the paths. A file that cannot be read has the digest "".
"""

import hashlib
import json
import subprocess
import sys

PROPERTIES = "LoadState,ActiveState,UnitFileState,NeedDaemonReload"


def unit_state(unit: str) -> dict[str, str]:
    """Return systemd's view of the unit; LoadState is not-found where it knows none."""
    shown = subprocess.run(
        ["systemctl", "show", "--property", PROPERTIES, unit], capture_output=True, text=True
    )
    pairs = (line.partition("=") for line in shown.stdout.splitlines())
    return {"LoadState": "not-found"} | {name: value for name, _, value in pairs}


def digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


unit, *paths = sys.argv[1:]
print(json.dumps({"unit": unit_state(unit), "sha256": {path: digest(path) for path in paths}}))
