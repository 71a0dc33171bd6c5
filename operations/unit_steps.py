"""What any unit of ours needs from systemd: unmasked, read as it is on disk, enabled.

`state` holds properties as `systemctl show` names them; an unknown unit has LoadState=not-found.
"""

from collections.abc import Mapping

from pyinfra.api import StringCommand
from pyinfra.api.operation import OperationMeta

from operations.steps import Step


def unit_steps(unit: str, state: Mapping[str, str], files_change: bool) -> list[Step]:
    """Return the steps that make systemd know the unit as written, and start it at boot.

    `files_change` says that this run writes the unit: a dry run cannot see that in `state`.
    """
    return [
        *_unmask(unit, state),
        *_reload(unit, state, files_change),
        *_enable(unit, state),
    ]


def changed(meta: OperationMeta) -> bool:
    """Return whether an earlier operation changed something or, before it ran, will."""
    return meta.did_change() if meta.is_complete() else meta.will_change


def _unmask(unit: str, state: Mapping[str, str]) -> list[Step]:
    file_state = state.get("UnitFileState", "")
    if not file_state.startswith("masked"):
        return []
    runtime = ["--runtime"] if file_state == "masked-runtime" else []
    return [Step(f"{unit} is masked", StringCommand("systemctl", "unmask", *runtime, unit))]


def _reload(unit: str, state: Mapping[str, str], files_change: bool) -> list[Step]:
    stale = state.get("NeedDaemonReload") == "yes"
    unread = state.get("LoadState", "not-found") in ("not-found", "masked")
    if not (stale or unread or files_change):
        return []
    reason = f"systemd has not read {unit} as it is on disk"
    return [Step(reason, StringCommand("systemctl", "daemon-reload"))]


def _enable(unit: str, state: Mapping[str, str]) -> list[Step]:
    found = state.get("UnitFileState") or "not known"
    if found == "enabled":
        return []
    return [Step(f"{unit} is {found}, wanted enabled", StringCommand("systemctl", "enable", unit))]
