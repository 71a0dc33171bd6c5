"""The server's unit, and the process that runs from it: what should be, and what is."""

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import OperationMeta

from facts.service import Record, Service, ServiceFacts
from failures.diagnosis import explain
from failures.known import GENERAL, SERVING
from files.bench.service_state import UNIT_DIRECTORIES
from files.bench.text import degenerate
from files.service.check_start import essence
from operations.answers import ask
from operations.live import Live
from operations.programs import PROGRAMS
from operations.steps import Step, carry_out, changes
from operations.unit_steps import differs, unit_steps

JOURNAL_LINES = 400


@dataclass(frozen=True)
class Check:
    """How the server is asked whether it works."""

    url: str
    model: str  # the served name
    question: str
    ready_seconds: int  # how long a start may take


@dataclass(frozen=True)
class Wanted:
    """What should run. Every text is known here, before anything is written to the host."""

    unit: str
    unit_file: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    texts: Mapping[str, str]  # of the unit and the environment file, by path
    serves_from: tuple[str, ...]  # files whose replacement calls for a restart
    check: Check
    api_key_file: str | None = None
    api_key_generation: int | None = None

    @property
    def watched(self) -> list[str]:
        """Every path whose state at the start of the process is recorded."""
        return [*self.texts, *self.serves_from, *drop_in_directories(self.unit)]


def drop_in_directories(unit: str) -> list[str]:
    """Return where a drop-in for the unit can lie, but for the vendor's own directory."""
    return [f"{parent}/{unit}.d" for parent in UNIT_DIRECTORIES]


def plan(found: Service, wanted: Wanted, served_changes: Sequence[str]) -> list[Step]:
    """Return the steps that make the wanted server run, enabled, from the wanted unit.

    `served_changes` names what earlier operations change in this run, which a dry run cannot see
    on the host yet.
    """
    drop_ins = _drop_in_steps(found)
    unread = bool(drop_ins) or differs(found["unit_sha256"], wanted.texts[wanted.unit_file])
    return [
        *drop_ins,
        *unit_steps(wanted.unit, found["unit"], unread),
        *_running_steps(found, wanted, served_changes),
    ]


@operation()
def running(
    wanted: Wanted, served: Mapping[str, OperationMeta] | None = None
) -> Generator[PyinfraCommand, None, None]:
    """Make the unit enabled and its process the one that is wanted; wait until it answers.

    One of the measuring programs does the waiting, so they are laid down before.

    + wanted: the unit, its texts and how to ask the server
    + served: operations that change what is served, by what they change ("the build")
    """
    found = ask(
        ServiceFacts,
        unit=wanted.unit,
        unit_file=wanted.unit_file,
        url=wanted.check.url,
        model=wanted.check.model,
        question=wanted.check.question,
        api_key_file=wanted.api_key_file,
        watch=wanted.watched,
        variables=sorted(wanted.environment),
    )
    changing = [what for what, meta in (served or {}).items() if changes(meta)]
    steps = plan(found, wanted, changing)
    yield from carry_out(steps, settled=f"{wanted.unit} runs what is configured, and answers")


def _drop_in_steps(found: Service) -> list[Step]:
    """Remove drop-ins: they change the unit without touching it, and nothing here writes any."""
    return [
        Step(
            f"{path} changes the unit by hand",
            StringCommand(
                *("rm", "-f", "--", QuoteString(path), "&&"),
                *("rmdir", "--ignore-fail-on-non-empty", "--", QuoteString(_parent(path))),
            ),
            tuple(f"-{line}" for line in text.splitlines()),
        )
        for path, text in found["drop_ins"].items()
    ]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _running_steps(found: Service, wanted: Wanted, served_changes: Sequence[str]) -> list[Step]:
    reasons = [
        *_stopped(found, wanted),
        *(f"{what} changes" for what in served_changes),
        *_stale_process(found, wanted),
        *_stale_files(found, wanted),
        *_dead(found, wanted),
    ]
    if reasons:
        return [Step("; ".join(reasons), _wait(wanted, restart=True))]
    if _answer_problem(found):
        reason = f"{wanted.unit} does not answer yet ({_answer_problem(found)})"
        return [Step(reason, _wait(wanted, restart=False))]
    return []


def _is_up(found: Service) -> bool:
    unit = found["unit"]
    up = unit.get("ActiveState") in ("active", "activating", "reloading")
    return up and unit.get("SubState") != "auto-restart"


def _stopped(found: Service, wanted: Wanted) -> list[str]:
    if _is_up(found):
        return []
    unit = found["unit"]
    state = f"{unit.get('ActiveState', 'inactive')} ({unit.get('SubState', 'dead')})"
    return [f"{wanted.unit} is {state}, wanted running"]


def _stale_process(found: Service, wanted: Wanted) -> list[str]:
    """Compare arguments and managed variables of the process; other variables are systemd's."""
    process = found["process"]
    if not process["argv"]:
        return []
    reasons = []
    if process["argv"] != list(wanted.argv):
        reasons.append(f"it runs with {_difference(process['argv'], wanted.argv)}")
    for name, value in sorted(wanted.environment.items()):
        ran_with = process["environment"].get(name)
        if ran_with != value:
            reasons.append(f"it runs with {name}={ran_with!r}, wanted {value!r}")
    return reasons


def _difference(found: Sequence[str], wanted: Sequence[str]) -> str:
    gone = [word for word in found if word not in wanted]
    new = [word for word in wanted if word not in found]
    if not gone and not new:
        return "its arguments in another order"
    return f"{' '.join(gone) or 'nothing'} where {' '.join(new) or 'nothing'} is wanted"


def _stale_files(found: Service, wanted: Wanted) -> list[str]:
    """Compare what the process was started from with what should be there."""
    if not _is_up(found) or not found["process"]["argv"]:
        return []
    record = found["record"]
    if record is None:
        return ["it was not started by this unit"]
    reasons = []
    for path, text in wanted.texts.items():
        if differs(_recorded(record, path)["sha256"], essence(text)):
            reasons.append(f"it was started from another {path}")
    for path in wanted.serves_from:
        if _recorded(record, path)["version"] != found["versions"].get(path, ""):
            reasons.append(f"{path} was written after it started")
    for path in drop_in_directories(wanted.unit):
        if _recorded(record, path)["version"]:
            reasons.append(f"it was started with drop-ins of {path}")
    return [*reasons, *_stale_key(found, wanted)]


def _recorded(record: Mapping[str, Record], path: str) -> Record:
    return record.get(path, Record(version="", sha256=""))


def _stale_key(found: Service, wanted: Wanted) -> list[str]:
    if wanted.api_key_file is None or found["key_generation"] == wanted.api_key_generation:
        return []
    return [f"its API key is of generation {found['key_generation']}"]


def _answer_problem(found: Service) -> str:
    """Return why there is no sane answer; "" where there is one."""
    answer = found["answer"]
    if answer is None:
        return "it is starting"
    if answer["status"] != 200:
        said = " ".join(answer["error"].split())[:120]
        return f"HTTP {answer['status']}: {said}" if answer["status"] else said
    return degenerate(answer["text"]) or ""


def _dead(found: Service, wanted: Wanted) -> list[str]:
    """Return why waiting is no use. A busy server, or one that still loads, is only waited for."""
    answer = found["answer"]
    if answer is None:
        return []
    loading = answer["status"] == 0 and found["age"] < wanted.check.ready_seconds
    busy = answer["status"] == 429 or answer["error"] == "timed out"
    problem = _answer_problem(found)
    return [] if loading or busy or not problem else [f"it runs and does not answer: {problem}"]


def _wait(wanted: Wanted, restart: bool) -> Live:
    check = wanted.check
    words = ["--unit", wanted.unit, "--url", check.url, "--model", check.model]
    words += ["--question", check.question, "--deadline", str(check.ready_seconds)]
    words += ["--api-key-file", wanted.api_key_file] if wanted.api_key_file else []
    words += ["--restart"] if restart else []
    return Live(
        StringCommand(
            *("cd", PROGRAMS, "&&", "/usr/bin/python3", "-B", "-m", "bench", "startup"),
            *map(QuoteString, words),
        ),
        evidence=lambda output: journal(wanted.unit, output),
        explain=lambda lines: explain(lines, (*SERVING, *GENERAL)),
    )


def journal(unit: str, output: Sequence[str]) -> StringCommand:
    """Return what shows the journal of the start that failed, or else the unit's latest lines.

    Earlier starts stay out: what killed those may be mended already.
    """
    found = re.search(r"\binvocation ([0-9a-f]{32})\b", "\n".join(output))
    matches = ["--unit", unit]
    if found:
        matches = [f"_SYSTEMD_INVOCATION_ID={found[1]}", "+", f"INVOCATION_ID={found[1]}"]
    options = ["--no-pager", "--output", "cat", "--lines", str(JOURNAL_LINES)]
    return StringCommand("journalctl", *options, *map(QuoteString, matches))
