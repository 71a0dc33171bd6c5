"""A streamed chat completion without I/O: lines and the time each came go in, figures come out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .figures import spread

# Where servers put generated text: all of it is decode work, so all of it counts.
TEXT_FIELDS = ("content", "reasoning_content", "reasoning")


class StreamError(Exception):
    """The server's stream is not what the chat completions API describes."""


@dataclass
class Completion:
    """One answer. Times are seconds since the request was sent."""

    text: str = ""
    reasoning: str = ""
    arrivals: list[float] = field(default_factory=list)  # of each chunk that carried output
    latency: float = 0.0  # until the last chunk of the answer
    prompt_tokens: int | None = None  # as the server counts them; None where it does not say
    completion_tokens: int | None = None
    finish_reason: str | None = None
    done: bool = False  # the end marker came

    @property
    def tokens(self) -> int:
        """The server's count, or the chunks where it gives none; a chunk can hold many tokens."""
        return len(self.arrivals) if self.completion_tokens is None else self.completion_tokens

    @property
    def ttft(self) -> float | None:
        return self.arrivals[0] if self.arrivals else None

    @property
    def tpot(self) -> float | None:
        """Seconds a token after the first, as `vllm bench serve` defines it.

        None where one chunk carried everything: it then holds no decode time.
        """
        if self.tokens < 2 or len(self.arrivals) < 2:
            return None
        return (self.latency - self.arrivals[0]) / (self.tokens - 1)

    @property
    def gaps(self) -> list[float]:
        return [b - a for a, b in zip(self.arrivals, self.arrivals[1:], strict=False)]

    @property
    def complaint(self) -> str | None:
        """Say what is wrong with a stream that ended: cut short, empty, or counted impossibly."""
        if not self.done and self.finish_reason is None:
            return f"the stream was cut after {len(self.arrivals)} chunks with output"
        if not self.arrivals:
            return "the stream ended without any output"
        if len(self.arrivals) > self.tokens:
            return f"{len(self.arrivals)} chunks carried output, usage says {self.tokens} tokens"
        return None

    def record(self) -> dict[str, Any]:
        """Return the figures at full precision, with where the token count comes from."""
        return {
            "tokens": self.tokens,
            "tokens_from": "chunks" if self.completion_tokens is None else "usage",
            "chunks": len(self.arrivals),
            "prompt_tokens": self.prompt_tokens,
            "ttft_s": self.ttft,
            "tpot_s": self.tpot,
            "latency_s": self.latency,
            "gaps_s": spread(self.gaps),
            "finish_reason": self.finish_reason,
        }


class StreamReader:
    """Feed it every line of the response body, then ask for `completion`."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.completion = Completion()

    def feed(self, line: bytes, now: float) -> None:
        """Take one line of server-sent events. Raises StreamError on what is none."""
        line = line.strip()
        if not line.startswith(b"data:"):
            return  # blank lines end an event; comments, ids and event names say nothing here
        data = line[len(b"data:") :].strip()
        if data == b"[DONE]":
            self.completion.done = True
        elif data:
            self._take(_parse(data), now - self.started)

    def _take(self, event: Mapping[str, Any], at: float) -> None:
        if event.get("error"):
            raise StreamError(f"the server broke off with an error: {error_text(event)}")
        choices, usage = event.get("choices"), event.get("usage")
        if choices:
            self._take_choice(choices, at)
            self.completion.latency = at  # a trailing chunk with usage alone ends nothing
        if isinstance(usage, Mapping):
            self.completion.prompt_tokens = _count(usage, "prompt_tokens")
            self.completion.completion_tokens = _count(usage, "completion_tokens")

    def _take_choice(self, choices: Any, at: float) -> None:
        choice = choices[0] if isinstance(choices, list) else None
        if not isinstance(choice, Mapping):
            raise StreamError(f"choices should hold an object, found {_short(choices)}")
        delta = choice.get("delta") or {}
        if not isinstance(delta, Mapping):
            raise StreamError(f"delta should be an object, found {_short(delta)}")
        parts = {name: delta.get(name) or "" for name in TEXT_FIELDS}
        if not all(isinstance(part, str) for part in parts.values()):
            raise StreamError(f"text should be a string, found {_short(delta)}")
        self.completion.text += parts["content"]
        self.completion.reasoning += parts["reasoning_content"] or parts["reasoning"]
        if any(parts.values()) or delta.get("tool_calls"):
            self.completion.arrivals.append(at)
        self.completion.finish_reason = choice.get("finish_reason") or self.completion.finish_reason


def error_text(body: Any) -> str:
    """Return the server's own words out of an error body (OpenAI's form, FastAPI's, or any)."""
    found = body
    for key in ("error", "message"):
        if isinstance(found, Mapping) and found.get(key):
            found = found[key]
    if isinstance(found, Mapping):
        found = found.get("detail", found)
    return found if isinstance(found, str) else _short(found)


def _parse(data: bytes) -> Mapping[str, Any]:
    try:
        event = json.loads(data)
    except ValueError as error:
        raise StreamError(f"an event is not JSON: {data[:200]!r}") from error
    if not isinstance(event, Mapping):
        raise StreamError(f"an event should be an object, found {_short(event)}")
    return event


def _count(usage: Mapping[str, Any], key: str) -> int | None:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _short(value: Any) -> str:
    return json.dumps(value, default=str)[:300]
