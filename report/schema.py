"""The document of one benchmark run, `vllm-g5g/run/1`: what is written, read, drawn and compared.

Times are seconds, rates are tokens or 10^9 bytes a second, sizes are bytes, all at full precision.
A field that nothing measured is null; no field is guessed. A later layout gets another number.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SCHEMA: Literal["vllm-g5g/run/1"] = "vllm-g5g/run/1"

Amount = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]  # part of file names


class Document(BaseModel):
    """Strict: an unknown or missing field is an error here and not a hole in a report."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Spread(Document):
    """`spread` is (max - min) / median of `n` values; `stdev` needs two."""

    median: Amount
    min: Amount
    max: Amount
    mean: Amount
    stdev: Amount | None
    spread: Amount | None
    n: Annotated[int, Field(ge=1)]


class Request(Document):
    """One completion as the client saw it; `tokens_from` says who counted its tokens."""

    batch: Count | None = None
    start_s: Amount | None = None  # since its batch began
    tokens: Count
    tokens_from: Literal["usage", "chunks"]
    chunks: Count
    prompt_tokens: Count | None
    ttft_s: Amount | None
    tpot_s: Amount | None
    latency_s: Amount
    gaps_s: Spread | None
    finish_reason: str | None


class Cell(Document):
    """One shape of load. Warm-ups are here and in no figure; `message` says why it is not ok."""

    id: str
    kind: Literal["ladder", "concurrency"]
    context: Annotated[int, Field(ge=1)]  # tokens wanted; `prompt_tokens` says what it came to
    output: Annotated[int, Field(ge=1)]
    concurrency: Annotated[int, Field(ge=1)]
    state: Literal["ok", "infeasible", "failed"]
    message: str | None
    wall_s: Amount
    tokens: Count
    aggregate_tokens_per_s: Amount | None  # tokens / wall_s, over all batches
    batches_tokens_per_s: Spread | None  # the same, a batch at a time
    ttft_s: Spread | None
    tpot_s: Spread | None
    latency_s: Spread | None
    prompt_tokens: Spread | None
    requests: tuple[Request, ...]
    warmups: tuple[Request, ...]
    partial: tuple[Request, ...]  # what had come of requests that failed
    prefix_hit_rate: Amount | None = None  # of the server's prefix cache, during this cell


class Method(Document):
    """How it was measured; runs of different methods are not comparable."""

    contexts: tuple[int, ...]
    outputs: tuple[int, ...]
    concurrencies: tuple[int, ...]
    concurrency_context: int
    concurrency_output: int
    requests_per_stream: Annotated[int, Field(ge=1)]
    repeats: Annotated[int, Field(ge=1)]  # batches of each cell
    warmups: Count
    nonce: bool  # every prompt began with digits that no prefix cache had seen


class Ceiling(Document):
    """What memory allows one stream: each token reads every weight that streams, once."""

    streamed_bytes_per_token: Annotated[float, Field(gt=0)]
    read_gb_per_s: Annotated[float, Field(gt=0)]
    tokens_per_s: Annotated[float, Field(gt=0)]


class Bandwidth(Document):
    """Memory bandwidth in GB/s; `peak` is the theoretical one, null where it cannot be read."""

    read: Spread
    copied: Spread
    write: Spread
    scale: Spread
    peak: Amount | None
    plain_copy: Amount
    buffer_bytes: Count


class Machine(Document):
    """A host as it describes itself; null is what it does not say."""

    hostname: str
    product: str | None  # of the firmware: the instance type on EC2
    architecture: str
    kernel: str
    cpu: str | None
    cores: int | None
    memory_bytes: Count | None
    gpus: tuple[Mapping[str, str], ...]


class Measurement(Document):
    """What the harness leaves on a host: the cells, and what is attached to them unread."""

    schema_: Annotated[Literal["vllm-g5g/measurement/1"], Field(alias="schema")]
    id: Id
    started: str
    ended: str
    digest: str  # of the plan that was carried out
    server: Mapping[str, Any]
    method: Method
    about: Mapping[str, Any]
    attached: Mapping[str, Any]
    machine: Machine
    cells: tuple[Cell, ...]


class Run(Document):
    """One benchmark of one host."""

    schema_: Annotated[Literal["vllm-g5g/run/1"], Field(alias="schema")] = SCHEMA
    id: Id
    host: str
    started: str  # UTC, ISO 8601
    ended: str
    runtime: str
    model: str
    profile: str | None  # the kind of hardware it was configured as
    hardware: Machine
    software: Mapping[str, Any]  # versions, and the digest of the build that served
    method: Method
    cells: tuple[Cell, ...]
    bandwidth: Bandwidth | None
    ceiling: Ceiling | None
    smoke: Mapping[str, Any] | None  # the record of the smoke check
    readiness: Mapping[str, Any] | None  # the times of the last boot
    notes: tuple[str, ...]
    evidence: Mapping[str, str]  # section -> how its figures are known


D = TypeVar("D", Run, Measurement)


class NotARun(Exception):
    """A file is no run of this schema; the message says which file and which fields."""


def parse(text: str, source: str) -> Run:
    """Return the run in a JSON text. Raises NotARun."""
    return _validated(Run, text, source)


def parse_measurement(text: str, source: str) -> Measurement:
    """Return what a harness left, from its JSON text. Raises NotARun."""
    return _validated(Measurement, text, source)


def _validated(kind: type[D], text: str, source: str) -> D:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        name = {Run: "run", Measurement: "measurement"}[kind]
        raise NotARun(f"{source} is no {name} of this schema: {_faults(error)}") from error


def _faults(error: ValidationError) -> str:
    found = [f"{'.'.join(map(str, e['loc'])) or 'document'}: {e['msg']}" for e in error.errors()]
    return "; ".join(found[:5]) + (f"; and {len(found) - 5} more" if found[5:] else "")


def json_schema() -> str:
    """Return the JSON Schema of a run, as docs/run-1.schema.json holds it for other programs."""
    return json.dumps(Run.model_json_schema(by_alias=True), indent=1, sort_keys=True)


def read(path: Path) -> Run:
    """Return the run in a file. Raises NotARun, and OSError where it cannot be read."""
    return parse(path.read_text(), str(path))


def dumps(run: Run) -> str:
    """Return the JSON text of a run, checked by reading it back."""
    text = run.model_dump_json(by_alias=True, indent=1) + "\n"
    parse(text, f"run {run.id}")
    return text
