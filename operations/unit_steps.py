"""What any unit of ours needs from systemd: unmasked, read as it is on disk, enabled.

`state` holds properties as `systemctl show` names them; an unknown unit has LoadState=not-found.
"""

import hashlib
from collections.abc import Mapping

from pyinfra.api import StringCommand

from operations.steps import Step


def unit_steps(unit: str, state: Mapping[str, str], unread: bool) -> list[Step]:
    """Return the steps that make systemd know the unit as written, and start it at boot.

    `unread` says that what is on disk changes in this run, which `state` cannot show before.
    """
    return [
        *_unmask(unit, state),
        *_reload(unit, state, unread),
        *_enable(unit, state),
    ]


def differs(sha256: str, text: str) -> bool:
    """Return whether a file of that digest is not yet what it is to be."""
    return sha256 != hashlib.sha256(text.encode()).hexdigest()


def _unmask(unit: str, state: Mapping[str, str]) -> list[Step]:
    file_state = state.get("UnitFileState", "")
    if not file_state.startswith("masked"):
        return []
    runtime = ["--runtime"] if file_state == "masked-runtime" else []
    return [Step(f"{unit} is masked", StringCommand("systemctl", "unmask", *runtime, unit))]


def _reload(unit: str, state: Mapping[str, str], unread: bool) -> list[Step]:
    stale = state.get("NeedDaemonReload") == "yes"
    unknown = state.get("LoadState", "not-found") in ("not-found", "masked")
    if not (stale or unknown or unread):
        return []
    reason = f"systemd has not read {unit} as it is on disk"
    return [Step(reason, StringCommand("systemctl", "daemon-reload"))]


def _enable(unit: str, state: Mapping[str, str]) -> list[Step]:
    found = state.get("UnitFileState") or "not known"
    if found == "enabled":
        return []
    return [Step(f"{unit} is {found}, wanted enabled", StringCommand("systemctl", "enable", unit))]
