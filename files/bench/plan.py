"""What a benchmark measures: its cells, and the method that makes two runs comparable."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .chat import Server, read_key


class PlanError(Exception):
    """The plan cannot be carried out as it was given; the message names the field."""


@dataclass(frozen=True)
class Cell:
    """One shape of load: so many streams of so long a prompt and so long an answer, in tokens."""

    kind: str  # ladder or concurrency
    context: int
    output: int
    concurrency: int

    @property
    def id(self) -> str:
        return f"{self.kind}-c{self.concurrency}-in{self.context}-out{self.output}"


@dataclass(frozen=True)
class Method:
    """How it is measured. Runs whose methods differ are not comparable."""

    contexts: tuple[int, ...] = (64, 512, 1024, 2048, 3800)
    outputs: tuple[int, ...] = (32, 128)
    concurrencies: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    concurrency_context: int = 512
    concurrency_output: int = 128
    requests_per_stream: int = 2  # of a batch in a concurrency cell; in a ladder cell it is one
    repeats: int = 3  # batches of each cell
    warmups: int = 1  # batches of one request a stream before those; kept, never averaged
    nonce: bool = True  # every prompt begins with digits that no cache has seen

    def cells(self) -> list[Cell]:
        shape = (self.concurrency_context, self.concurrency_output)
        return [
            *(Cell("ladder", c, o, 1) for c in self.contexts for o in self.outputs),
            *(Cell("concurrency", *shape, n) for n in self.concurrencies),
        ]


@dataclass(frozen=True)
class Plan:
    """The server, the method, where its prefix cache can be watched, and what joins the run.

    `attach` names JSON files on the host (the smoke record, the build stamp) to keep beside the
    figures; `about` is kept as it is.
    """

    server: Mapping[str, Any]  # url, model, api_key_file, timeout, full_length
    method: Method
    metrics: str | None = None
    prefix_counters: tuple[str, ...] = ()  # names of the counters for queries and hits
    attach: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Names what is measured and how; a run begun under another digest is another run."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def client(self) -> Server:
        """Return the server to ask. Raises OSError where the key file cannot be read."""
        known = {k: v for k, v in self.server.items() if k != "api_key_file"}
        return Server(api_key=read_key(self.server.get("api_key_file")), **known)


def parse(text: str) -> Plan:
    """Return the plan in a JSON text. Raises PlanError."""
    try:
        raw = json.loads(text)
        method = Method(**{k: _tuple(v) for k, v in raw.pop("method").items()})
        plan = Plan(method=method, **{k: _tuple(v) for k, v in raw.items()})
        _check(plan)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise PlanError(f"not a benchmark plan: {error!r}") from error
    return plan


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check(plan: Plan) -> None:
    """Raise PlanError on what would only fail minutes later."""
    for name, value in asdict(plan.method).items():
        numbers = value if isinstance(value, tuple) else (value,)
        least = 0 if name == "warmups" else 1
        if name != "nonce" and not all(isinstance(n, int) and n >= least for n in numbers):
            raise PlanError(f"{name} should be whole numbers of at least {least}, found {value!r}")
    for key in ("url", "model"):
        if not isinstance(plan.server.get(key), str):
            raise PlanError(f"server.{key} should be a text, found {plan.server.get(key)!r}")
