"""One server a host: what another runtime left running is stopped before ours is started."""

from collections.abc import Generator, Mapping, Sequence

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from facts.units import FoundUnit, Units
from operations.answers import ask
from operations.steps import Step, carry_out
from operations.unit_steps import removal_steps


def plan(found: Mapping[str, FoundUnit]) -> list[Step]:
    """Return the steps after which none of the units runs, starts at boot or is on disk."""
    why = "another runtime is wanted"
    return [step for unit, state in found.items() for step in removal_steps(unit, state, why)]


@operation()
def others_gone(units: Sequence[str]) -> Generator[PyinfraCommand, None, None]:
    """Have none of the other runtimes' units on the host; port and memory are for one server.

    + units: names of units, as `runtimes.others` gives them
    """
    found = ask(Units, units=list(units))
    yield from carry_out(plan(found), settled=f"not there: {', '.join(units)}")
