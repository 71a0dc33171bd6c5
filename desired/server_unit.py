"""What the server's stage lays down, as text: unit, environment file and the check before a start.

Everything is rendered on this machine, so the deploy can compare it with what runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from desired.rendering import rendered
from desired.serving import Server
from desired.unit_syntax import command_line, environment_file
from operations.filesystem import Absent, Entry, File
from operations.programs import PROGRAMS
from operations.service import Check, Wanted, drop_in_directories
from runtimes import RUNTIMES, Runtime

ROOT = Path(__file__).resolve().parent.parent
UNIT = RUNTIMES["vllm"].unit
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
ENVIRONMENT_PATH = "/etc/vllm-g5g/vllm.env"
API_KEY_PATH = "/etc/vllm-g5g/api-key.env"
CHECK_SCRIPT = f"{PROGRAMS}/check_start.py"
RECORD_PATH = "/run/vllm/started.json"
# Beyond the time that requests in flight get: to give back GPU memory and end.
STOP_MARGIN_SECONDS = 30


@dataclass(frozen=True)
class ServerUnit:
    """The server and what its unit must know beyond it."""

    server: Server
    user: str
    stamp: str  # of the build
    manifest: str  # of the checkpoint
    question: str  # that a healthy server answers in words
    memory_max: str  # as MemoryMax=: "95%", "12G", "infinity"
    api_key_generation: int | None  # None: no key is asked for
    runtime: Runtime = RUNTIMES["vllm"]

    @property
    def path(self) -> str:
        return f"/etc/systemd/system/{self.runtime.unit}"

    @property
    def api_key_file(self) -> str | None:
        return API_KEY_PATH if self.api_key_generation is not None else None

    @property
    def serves_from(self) -> tuple[str, ...]:
        key = [self.api_key_file] if self.api_key_file else []
        return (self.stamp, self.manifest, *key)


def texts(unit: ServerUnit) -> dict[str, str]:
    """Return the unit and the environment file, by path."""
    return {
        unit.path: _unit_text(unit),
        ENVIRONMENT_PATH: environment_file(
            unit.runtime.environment(unit.server),
            "Managed by vllm-g5g; edit group_data (server_environment)",
        ),
    }


def entries(unit: ServerUnit) -> list[Entry]:
    """Return the files of the stage; the script first, since the unit calls it."""
    check = (ROOT / "files" / "service" / "check_start.py").read_text()
    return [
        File(CHECK_SCRIPT, check, mode="755"),
        *(File(path, text) for path, text in texts(unit).items()),
        *([] if unit.api_key_file else [Absent(API_KEY_PATH)]),
    ]


def wanted(unit: ServerUnit) -> Wanted:
    """Return what should run, for the operation that compares it with what does."""
    server, runtime = unit.server, unit.runtime
    return Wanted(
        unit=runtime.unit,
        unit_file=unit.path,
        argv=tuple(runtime.argv(server)),
        environment=runtime.environment(server),
        texts=texts(unit),
        serves_from=unit.serves_from,
        check=Check(
            url=server.url,
            model=runtime.request_model(server),
            question=unit.question,
            ready_seconds=server.ready_seconds,
        ),
        api_key_file=unit.api_key_file,
        api_key_generation=unit.api_key_generation,
    )


def _unit_text(unit: ServerUnit) -> str:
    server = unit.server
    return rendered(
        "vllm.service.j2",
        title=unit.runtime.title,
        documentation=unit.runtime.documentation,
        served_name=" ".join(server.served_name.split()).replace("%", "%%"),
        user=unit.user,
        environment_file=ENVIRONMENT_PATH,
        api_key_file=unit.api_key_file,
        gpus=server.gpus,
        check=command_line(_check_words(unit)),
        command=command_line(unit.runtime.argv(server)),
        start_timeout=server.ready_seconds,
        stop_timeout=server.drain_seconds + STOP_MARGIN_SECONDS,
        memory_max=unit.memory_max,
    )


def _check_words(unit: ServerUnit) -> Sequence[str]:
    drop_ins = drop_in_directories(unit.runtime.unit)
    watched = [unit.path, ENVIRONMENT_PATH, *unit.serves_from, *drop_ins]
    return [
        *("/usr/bin/python3", CHECK_SCRIPT, "--stamp", unit.stamp),
        *("--checkpoint", unit.server.model, "--gpus", str(unit.server.gpus)),
        *("--listen", unit.server.address, str(unit.server.port)),
        *("--record", RECORD_PATH, "--watch", *watched),
    ]
