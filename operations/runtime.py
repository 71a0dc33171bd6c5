"""One server a host: what another runtime left running is stopped before ours is started."""

from collections.abc import Generator, Mapping, Sequence

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.units import FoundUnit, Units
from operations.steps import Step, carry_out


def plan(found: Mapping[str, FoundUnit]) -> list[Step]:
    """Return the steps after which none of the units runs, starts at boot or is on disk."""
    return [step for unit, state in found.items() for step in _gone(unit, state)]


def _gone(unit: str, found_unit: FoundUnit) -> list[Step]:
    active, on_disk = found_unit["state"].get("ActiveState", "inactive"), found_unit["sha256"]
    if active in ("inactive", "failed") and not on_disk:
        return []
    found = f"{unit} is {active}, and another runtime is wanted"
    if not on_disk:  # removed by hand: there is nothing to disable
        return [Step(found, StringCommand("systemctl", "stop", "--", QuoteString(unit)))]
    remove = StringCommand(
        # It stops before its file goes: systemd would not know how to stop it afterwards.
        *("systemctl", "disable", "--now", "--", QuoteString(unit), "&&"),
        *("rm", "-f", "--", QuoteString(f"/etc/systemd/system/{unit}"), "&&"),
        *("systemctl", "daemon-reload"),
    )
    return [Step(found, remove)]


@operation()
def others_gone(units: Sequence[str]) -> Generator[PyinfraCommand, None, None]:
    """Have none of the other runtimes' units on the host; port and memory are for one server.

    + units: names of units, as `runtimes.others` gives them
    """
    found = host.get_fact(Units, units=list(units))
    yield from carry_out(plan(found), settled=f"not there: {', '.join(units)}")
