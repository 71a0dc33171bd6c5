"""A benchmark of what a host serves: measured there, kept here as JSON and as a page."""

import hashlib
import io
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from facts.bench import Bench, FoundRun
from files.bench.plan import Method, Plan
from operations.answers import ask
from operations.filesystem import File
from operations.live import Live
from operations.smoke import program_files
from operations.steps import Step, carry_out
from report.archive import keep, place
from report.schema import NotARun


@dataclass(frozen=True)
class Benchmark:
    """What to ask and how, and what the report says of it beyond the figures.

    + full_length: fields that keep this server's answers from ending early
    + metrics, prefix_counters: where the hits of its prefix cache can be read
    + attach: JSON files on the host that join the run, by name (smoke, build, readiness)
    + about: joins the run as it is (host, profile, runtime, software, streamed_bytes_per_token)
    """

    url: str
    model: str
    method: Method
    api_key_file: str | None = None
    timeout: float = 600.0  # seconds one request may take
    full_length: Mapping[str, Any] = field(default_factory=dict)
    metrics: str | None = None
    prefix_counters: tuple[str, ...] = ()
    attach: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def plan(self) -> Plan:
        """Return the plan that the harness carries out on the host."""
        server = ("url", "model", "api_key_file", "timeout", "full_length")
        return Plan(
            {name: getattr(self, name) for name in server},
            self.method,
            self.metrics,
            self.prefix_counters,
            self.attach,
            self.about,
        )


@dataclass(frozen=True)
class Places:
    """`programs` and `runs` are directories on the host, `reports` is one on this machine."""

    programs: str
    runs: str
    reports: Path


def directory_of(files: Mapping[str, str | None], benchmark: Benchmark) -> str:
    """Return the name of the run's directory: what is served, how and by what it is measured."""
    measured_by = [e.content for e in program_files("") if isinstance(e, File)]
    subject = [dict(files), measured_by, asdict(benchmark.plan())]
    return hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()[:16]


def why(found: FoundRun | None, cells: int, *, always: bool) -> str | None:
    """Return why to measure now, or None where the run of what is served is whole."""
    if found is None:
        return f"no benchmark of what is served is on record: {cells} cells"
    if not found["whole"]:
        return f"the benchmark was interrupted after {found['cells']} of {cells} cells: going on"
    return "a benchmark was asked for" if always else None


def measuring(
    found: FoundRun | None, name: str, benchmark: Benchmark, places: Places, always: bool
) -> list[Step]:
    """Return the step that measures, unless a whole run of what is served is there."""
    reason = why(found, len(benchmark.method.cells()), always=always)
    command = StringCommand(
        *("cd", QuoteString(places.programs), "&&", "python3", "-B", "-m", "bench", "run"),
        *("--out", QuoteString(str(PurePosixPath(places.runs, name)))),
        *(["--again"] if always else []),
        _stdin=json.dumps(asdict(benchmark.plan())),
    )
    return [Step(reason, Live(command))] if reason else []


def fetching(found: FoundRun | None, name: str, places: Places, host_name: str) -> list[Step]:
    """Return the step that keeps the run on this machine, unless it is here."""
    if found is None or not found["whole"] or found["id"] is None:
        return []
    here = place(places.reports, host_name, found["id"])
    if here.exists() and here.with_suffix(".html").exists():
        return []
    there = str(PurePosixPath(places.runs, name, "run.json"))
    return [Step(f"{here} is missing", FunctionCommand(_fetch, (there, places.reports), {}))]


def _fetch(state: State, host: Host, there: str, reports: Path) -> bool:
    """Fetch, validate and keep; a run that does not validate fails its host and is not kept."""
    content = io.BytesIO()
    if not host.get_file(there, content):
        return False
    try:
        kept = keep(reports, host.name, content.getvalue().decode())
    except NotARun as error:
        host.log_styled(f"{there}: {error}", fg="red", log_func=logger.error)
        return False
    host.log(f"{kept.with_suffix('.html')}")
    return True


@operation()
def measured(
    benchmark: Benchmark, served: Sequence[str], places: Places, always: bool = False
) -> Generator[PyinfraCommand, None, None]:
    """Have a whole benchmark of what is served now, and its report on this machine.

    An interrupted run goes on where it was; one that another connection began is waited for.

    + benchmark: what to ask and how
    + served: files on the host that say what is served, as for the smoke check
    + places: directories on the host and here
    + always: measure again even if nothing changed; every run then reports a change
    """
    state = ask(Bench, runs=places.runs, files=list(served))
    # Once: the programs on this machine may be edited while the host measures.
    name = directory_of(state["files"], benchmark)
    steps = measuring(state["runs"].get(name), name, benchmark, places, always)
    if steps:
        yield from carry_out(steps, settled="")
        state = ask(Bench, runs=places.runs, files=list(served))
    fetch = fetching(state["runs"].get(name), name, places, host.name)
    if fetch or not steps:
        yield from carry_out(fetch, settled=f"measured, and reported in {places.reports}")
