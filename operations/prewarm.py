"""One reading of all that a first start needs, with many readers and before it.

On a volume made from a snapshot each block is slow once. An instance that is launched from an image
serves by itself at boot, before any deploy, so this is a unit of the host. Untested on a g5g.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import PurePosixPath

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from desired.rendering import rendered
from desired.unit_syntax import command_line
from facts.script import FILES
from facts.units import FoundUnit, Units
from operations.answers import ask
from operations.filesystem import Absent, Entry, File
from operations.programs import PROGRAMS
from operations.steps import Step, carry_out
from operations.unit_steps import differs, removal_steps, unit_steps

UNIT = "vllm-prewarm.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
PROGRAM = f"{PROGRAMS}/prewarm.py"
# Beyond the program's own limit, for a read that hangs and for listing the files.
MARGIN_SECONDS = 60


@dataclass(frozen=True)
class Prewarm:
    """What is read before the first start of which server."""

    server_unit: str  # that wants it
    servers: tuple[str, ...]  # units that it comes before
    python: str  # the interpreter whose packages are read
    packages: tuple[str, ...]
    checkpoint: str  # directory
    record: str  # JSON file: which machine has read, how much and how fast
    limit: int  # seconds, after which the server starts whatever is left


def entries(wanted: Prewarm | None) -> list[Entry]:
    """Return the program and its unit; where none is wanted, the absence of the program.

    The unit is left to the operation then: its links go with it.
    """
    if wanted is None:
        return [Absent(PROGRAM)]
    program = (FILES / "prewarm" / "prewarm.py").read_text()
    return [File(PROGRAM, program, mode="755"), File(UNIT_PATH, _unit_text(wanted))]


@operation()
def arranged(wanted: Prewarm | None) -> Generator[PyinfraCommand, None, None]:
    """Have the reading start before the server does, from the server's next start on.

    + wanted: as given to `entries`, which an earlier operation has put in their places; None: the
      unit goes. What was read stays on record.
    """
    found = ask(Units, units=[UNIT])[UNIT]
    settled = f"{UNIT} is not there" if wanted is None else f"{UNIT} comes before the server"
    yield from carry_out(plan(found, wanted), settled=settled)


def plan(found: FoundUnit, wanted: Prewarm | None) -> list[Step]:
    """Return the steps that make systemd start the reading with the server, or know it no more."""
    if wanted is None:
        return removal_steps(UNIT, found, "prewarm is off")
    unread = differs(found["sha256"], _unit_text(wanted))
    return unit_steps(UNIT, found["state"], unread, wanted_by=wanted.server_unit)


def _unit_text(wanted: Prewarm) -> str:
    words = [wanted.python, "-I", PROGRAM, "--record", wanted.record]
    words += ["--limit", str(wanted.limit)]
    words += [word for package in wanted.packages for word in ("--package", package)]
    words += ["--directory", wanted.checkpoint]
    return rendered(
        "vllm-prewarm.service.j2",
        servers=" ".join(wanted.servers),
        server_unit=wanted.server_unit,
        command=command_line(words),
        timeout=wanted.limit + MARGIN_SECONDS,
        writes=str(PurePosixPath(wanted.record).parent),
    )
