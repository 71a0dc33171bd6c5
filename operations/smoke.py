"""Proof that a host serves: memory bandwidth, speed and sense, on record with what was tested."""

import hashlib
import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import OperationMeta

from facts.smoke import Smoke, SmokeRecord, SmokeState
from operations.answers import ask
from operations.filesystem import Directory, Entry, File
from operations.live import Live
from operations.steps import Step, carry_out, changes

FILES = Path(__file__).resolve().parent.parent / "files"


@dataclass(frozen=True)
class Check:
    """What to ask of a host, and how much to demand; a demand of None is none.

    `question` is asked word for word and `expect` is a regular expression for the answer.
    """

    model: str
    question: str
    expect: str
    torch_python: str  # an interpreter on the host that has torch
    url: str = "http://127.0.0.1:8000"
    health: str = "/health"
    wait: int = 1800  # seconds until the server must be healthy
    api_key_file: str | None = None
    lengths: tuple[int, ...] = (64, 256)  # tokens of the timed completions
    repeats: int = 3  # of each length, after one warm-up
    # JSON fields that drive a checkpoint which ends early to the full length; "{}": none.
    full_length: str = "{}"
    device: str = "auto"  # of the bandwidth probe: auto, cuda, cpu
    least_gb_per_s: float | None = None  # of memory reads
    least_tokens_per_s: float | None = None  # of single-stream decode


def program_files(directory: str) -> list[Entry]:
    """Return the measuring programs as managed files below `directory`, which is there already."""
    packages = ("bench", "bench/bandwidth")
    modules = [path for package in packages for path in sorted((FILES / package).glob("*.py"))]
    return [
        *(Directory(f"{directory}/{package}") for package in packages),
        *(File(f"{directory}/{path.relative_to(FILES)}", path.read_text()) for path in modules),
    ]


def digest_of(served: Mapping[str, str | None], programs: Sequence[Entry], check: Check) -> str:
    """Return one digest of what is served, what measures it and what is demanded."""
    measured_by = {e.path: e.content for e in programs if isinstance(e, File)}
    tested = [dict(served), measured_by, asdict(check)]
    return hashlib.sha256(json.dumps(tested, sort_keys=True).encode()).hexdigest()


def why(record: SmokeRecord | None, digest: str, *, always: bool, changing: bool) -> str | None:
    """Return why to check now, or None where the last check still holds."""
    if record is None:
        return "no smoke check is on record"
    if not record["passed"]:
        return f"the check of {record['at']} failed: {'; '.join(record['complaints'])}"
    if changing:
        return "what is served changes in this run"
    if record["digest"] != digest:
        return f"what is served or demanded has changed since the check of {record['at']}"
    return "a check was asked for" if always else None


def command(check: Check, directory: str, record: str, digest: str) -> StringCommand:
    """Return the command that checks, records, and fails with what it found on stderr."""
    return StringCommand(
        *("cd", QuoteString(directory), "&&", "python3", "-B", "-m", "bench", "smoke"),
        *_option("digest", digest),
        *_option("record", record),
        *(bit for key, value in asdict(check).items() for bit in _option(key, value)),
    )


def _option(key: str, value: object) -> list[str | QuoteString]:
    """Return `--key=value` as words; the `=` keeps a value with a leading dash a value."""
    flag = f"--{key.replace('_', '-')}"
    if value is None:
        return []
    if isinstance(value, tuple):
        return [flag, *(QuoteString(str(item)) for item in value)]
    return [QuoteString(f"{flag}={value}")]


def plan(
    state: SmokeState,
    check: Check,
    directory: str,
    record: str,
    *,
    texts: Mapping[str, str],
    always: bool = False,
    changing: bool = False,
) -> list[Step]:
    """Return the step that checks the host, unless the last check tested just this and passed."""
    digest = digest_of({**state["files"], **texts}, program_files(directory), check)
    reason = why(state["record"], digest, always=always, changing=changing)
    live = Live(command(check, directory, record, digest))
    return [Step(reason, live)] if reason else []


@operation()
def checked(
    check: Check,
    served: Sequence[str],
    texts: Mapping[str, str],
    directory: str,
    record: str,
    always: bool = False,
    after: Sequence[OperationMeta] = (),
) -> Generator[PyinfraCommand, None, None]:
    """Have a smoke check on record that passed and that tested what is served now.

    + check: what to ask and to demand
    + served: files on the host that say what is served: build stamp, checkpoint manifest
    + texts: files whose text is known here, the unit and its environment, by path: they count as
      they should be, since an earlier operation makes them so
    + directory: where `program_files` put the measuring programs
    + record: the JSON file on the host that keeps the result
    + always: check even if nothing changed; every run then reports a change
    + after: operations whose change asks for a check; a dry run foretells it from them, because
      what they will write is not there yet to be digested
    """
    state = ask(Smoke, record=record, files=list(served))
    changing = any(map(changes, after))
    steps = plan(state, check, directory, record, texts=texts, always=always, changing=changing)
    at = state["record"]["at"] if state["record"] else ""
    yield from carry_out(steps, settled=f"what is served passed the smoke check of {at}")
