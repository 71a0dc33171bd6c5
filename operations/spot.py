"""A timer on the host that drains the server when EC2 takes a spot instance back."""

from collections.abc import Generator, Mapping
from itertools import chain

from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from desired.rendering import rendered
from facts.script import FILES
from facts.units import FoundUnit, Units
from operations.answers import ask
from operations.filesystem import Absent, Entry, File
from operations.programs import PROGRAMS
from operations.steps import Step, carry_out
from operations.unit_steps import differs, removal_steps, unit_steps

SERVICE, TIMER = "vllm-spot.service", "vllm-spot.timer"
SCRIPT_PATH = f"{PROGRAMS}/spot_interruption.py"


def unit_texts(server_unit: str) -> dict[str, str]:
    """Return the text of the timer and of the unit that it starts, by name."""
    return {name: rendered(f"{name}.j2", server_unit=server_unit) for name in (SERVICE, TIMER)}


def entries(server_unit: str | None) -> list[Entry]:
    """Return the script and the two units; for no server, the absence of the script.

    The units are left to the operation then: their links go with them.
    """
    if server_unit is None:
        return [Absent(SCRIPT_PATH)]
    script = (FILES / "spot" / "spot_interruption.py").read_text()
    units = unit_texts(server_unit).items()
    return [
        File(SCRIPT_PATH, script, mode="755"),
        *(File(f"/etc/systemd/system/{name}", text) for name, text in units),
    ]


@operation()
def watched(server_unit: str | None) -> Generator[PyinfraCommand, None, None]:
    """Have the timer run, from its units as they are to be; for no server, have none.

    It is the same on every host: off EC2 and on demand it finds nothing to do.
    """
    found = ask(Units, units=[SERVICE, TIMER])
    settled = f"{TIMER} runs" if server_unit else f"{TIMER} is not there"
    yield from carry_out(plan(found, server_unit), settled=settled)


def plan(found: Mapping[str, FoundUnit], server_unit: str | None) -> list[Step]:
    """Return the steps that make the timer run as it is written, or that take it away."""
    if server_unit is None:
        why = "nobody looks out for spot interruptions"
        removals = (removal_steps(name, found[name], why) for name in (TIMER, SERVICE))
        return list(chain.from_iterable(removals))
    texts = unit_texts(server_unit)
    changed = any(differs(found[name]["sha256"], text) for name, text in texts.items())
    stale = any(entry["state"].get("NeedDaemonReload") == "yes" for entry in found.values())
    timer = found[TIMER]["state"]
    steps = unit_steps(TIMER, timer, changed or stale)
    state = timer.get("ActiveState", "not known")
    if state != "active" or changed:
        why = f"{TIMER} is {state}" if state != "active" else f"{TIMER} runs as it was before"
        steps.append(Step(why, StringCommand("systemctl", "restart", TIMER)))
    return steps
