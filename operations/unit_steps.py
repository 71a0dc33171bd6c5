"""What any unit of ours needs from systemd: unmasked, read as it is on disk, enabled.

`state` holds properties as `systemctl show` names them; an unknown unit has LoadState=not-found.
"""

import hashlib
from collections.abc import Mapping

from pyinfra.api import QuoteString, StringCommand

from facts.units import FoundUnit
from operations.steps import Step


def unit_steps(
    unit: str, state: Mapping[str, str], unread: bool, wanted_by: str | None = None
) -> list[Step]:
    """Return the steps that make systemd know the unit as written, and start it at boot.

    `unread` says that what is on disk changes in this run, which `state` cannot show before.
    `wanted_by` is the unit that it starts with, where that can be another than it was before.
    """
    return [
        *_unmask(unit, state),
        *_reload(unit, state, unread),
        *_enable(unit, state, wanted_by),
    ]


def removal_steps(unit: str, found: FoundUnit, why: str) -> list[Step]:
    """Return the steps after which the unit neither runs, starts at boot nor is on disk."""
    active, on_disk = found["state"].get("ActiveState", "inactive"), found["sha256"]
    if active in ("inactive", "failed") and not on_disk:
        return []
    reason = f"{unit} is {active}, and {why}"
    if not on_disk:  # removed by hand: there is nothing to disable
        return [Step(reason, StringCommand("systemctl", "stop", "--", QuoteString(unit)))]
    remove = StringCommand(
        # It stops before its file goes: systemd would not know how to stop it afterwards.
        *("systemctl", "disable", "--now", "--", QuoteString(unit), "&&"),
        *("rm", "-f", "--", QuoteString(f"/etc/systemd/system/{unit}"), "&&"),
        *("systemctl", "daemon-reload"),
    )
    return [Step(reason, remove)]


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


def _enable(unit: str, state: Mapping[str, str], wanted_by: str | None) -> list[Step]:
    found = state.get("UnitFileState") or "not known"
    if found != "enabled":
        reason = f"{unit} is {found}, wanted enabled"
        return [Step(reason, StringCommand("systemctl", "enable", unit))]
    wanting = state.get("WantedBy", "").split()
    if wanted_by is None or wanting == [wanted_by]:
        return []
    # "enabled" says only that some link is there; it may be that of a server that is gone.
    reason = f"{unit} starts with {' '.join(wanting) or 'no unit'}, wanted {wanted_by}"
    return [Step(reason, StringCommand("systemctl", "reenable", unit))]
