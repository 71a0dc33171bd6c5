"""A timer on the host that drains the server when EC2 takes a spot instance back."""

from collections.abc import Generator, Mapping
from pathlib import Path

from pyinfra import host
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.units import FoundUnit, Units
from operations.filesystem import Entry, File
from operations.programs import PROGRAMS
from operations.steps import Step, carry_out
from operations.unit_steps import differs, unit_steps

FILES = Path(__file__).resolve().parent.parent / "files" / "spot"
TIMER = "vllm-spot.timer"
SCRIPT_PATH = f"{PROGRAMS}/spot_interruption.py"
UNITS = {name: (FILES / name).read_text() for name in ("vllm-spot.service", TIMER)}


def entries() -> list[Entry]:
    """Return the script and the two units; their directories belong to an earlier operation."""
    return [
        File(SCRIPT_PATH, (FILES / "spot_interruption.py").read_text(), mode="755"),
        *(File(f"/etc/systemd/system/{name}", text) for name, text in UNITS.items()),
    ]


@operation()
def watched() -> Generator[PyinfraCommand, None, None]:
    """Have the timer run, from its units as they are to be.

    It is the same on every host: off EC2 and on demand it finds nothing to do.
    """
    found = host.get_fact(Units, units=list(UNITS))
    yield from carry_out(plan(found), settled=f"{TIMER} runs")


def plan(found: Mapping[str, FoundUnit]) -> list[Step]:
    """Return the steps that make the timer run, and run as it is written."""
    changed = any(differs(found[name]["sha256"], text) for name, text in UNITS.items())
    stale = any(entry["state"].get("NeedDaemonReload") == "yes" for entry in found.values())
    timer = found[TIMER]["state"]
    steps = unit_steps(TIMER, timer, changed or stale)
    state = timer.get("ActiveState", "not known")
    if state != "active" or changed:
        why = f"{TIMER} is {state}" if state != "active" else f"{TIMER} runs as it was before"
        steps.append(Step(why, StringCommand("systemctl", "restart", TIMER)))
    return steps
