"""What must be known of a server to run it, ask it and measure it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from desired.serving import Server


@dataclass(frozen=True)
class Runtime:
    """One server of the OpenAI chat completions API.

    + unit: of systemd; its journal is the log
    + argv, environment: how it is started; no secret is in either
    + request_model: what a request must call the model
    + health: path that answers 200 once requests are taken; a first answer can still take long
    + full_length: fields of a request that must not end early; `$tokens` in their strings stands
      for the tokens asked for
    + metrics: path of a Prometheus page, None where there is none
    + prefix_counters: its counters of the prefix cache's queries and hits
    + lock: file in files/locks/ with what it needs beyond vLLM's own lock, None for nothing
    + takes_api_key: whether it can refuse a request without a key; else loopback only
    """

    name: str
    title: str
    documentation: str  # URL
    unit: str
    distribution: str  # on PyPI, whose version a report names
    argv: Callable[[Server], list[str]]
    environment: Callable[[Server], dict[str, str]]
    request_model: Callable[[Server], str]
    health: str = "/health"
    full_length: Mapping[str, Any] = field(default_factory=dict)
    metrics: str | None = None
    prefix_counters: tuple[str, ...] = ()
    lock: str | None = None
    takes_api_key: bool = True
