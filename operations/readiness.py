"""A stopwatch beside the server: each start is timed to its health and to its first answer."""

from collections.abc import Generator
from dataclasses import dataclass

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from desired.rendering import rendered
from desired.unit_syntax import command_line
from facts.units import FoundUnit, Units
from operations.answers import ask
from operations.filesystem import File
from operations.steps import Step, carry_out
from operations.unit_steps import differs, unit_steps

UNIT = "vllm-readiness.service"


@dataclass(frozen=True)
class Stopwatch:
    """Whose start is timed, and how it is asked."""

    server_unit: str
    url: str
    model: str  # as a request names it
    programs: str  # directory of the measuring programs
    record: str  # JSON file with the times of the last start
    wait: int  # seconds after which a start is given up
    health: str = "/health"
    api_key_file: str | None = None


def unit_file(watch: Stopwatch) -> File:
    """Return the unit, for `filesystem.present`."""
    words = ["/usr/bin/python3", "-B", "-m", "bench", "readiness", "--url", watch.url]
    words += ["--model", watch.model, "--unit", watch.server_unit, "--health", watch.health]
    words += ["--wait", str(watch.wait), "--record", watch.record]
    words += ["--api-key-file", watch.api_key_file] if watch.api_key_file else []
    text = rendered(
        "vllm-readiness.service.j2",
        server_unit=watch.server_unit,
        programs=watch.programs,
        command=command_line(words),
    )
    return File(f"/etc/systemd/system/{UNIT}", text)


def plan(found: FoundUnit, watch: Stopwatch) -> list[Step]:
    """Return the steps that make systemd start the stopwatch with the server."""
    unread = differs(found["sha256"], unit_file(watch).content)
    return unit_steps(UNIT, found["state"], unread, wanted_by=watch.server_unit)


@operation()
def timed(watch: Stopwatch) -> Generator[PyinfraCommand, None, None]:
    """Have the stopwatch start with the server, from the server's next start on.

    + watch: as given to `unit_file`, which an earlier operation has put in its place
    """
    found = ask(Units, units=[UNIT])[UNIT]
    yield from carry_out(plan(found, watch), settled="each start of the server is timed")
