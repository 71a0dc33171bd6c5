"""One cell measured: closed-loop streams against the server, and what came of every request."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from threading import Lock, Thread
from typing import Any

from .chat import ChatError, Clock, Server, Trouble, complete, full_length_body
from .figures import spread
from .plan import Cell
from .stream import Completion

Prompter = Callable[[], str]  # a fresh prompt of the cell's length


@dataclass
class Outcome:
    """Everything that a batch of requests gave; times are seconds since the batch began."""

    done: list[tuple[float, Completion]] = field(default_factory=list)  # start, completion
    errors: list[ChatError] = field(default_factory=list)
    wall: float = 0.0

    @property
    def tokens(self) -> int:
        return sum(completion.tokens for _, completion in self.done)


@dataclass(frozen=True)
class Batch:
    """Requests at `cell.concurrency` at a time; a stream asks again once it is answered."""

    server: Server
    cell: Cell
    prompt: Prompter
    clock: Clock = time.monotonic

    def run(self, requests: int) -> Outcome:
        outcome, lock, numbers = Outcome(), Lock(), iter(range(requests))
        began = self.clock()
        streams = [
            # Daemons, so that an interrupted run ends at once and not with its slowest answer.
            Thread(target=self._stream, args=(numbers, lock, outcome, began), daemon=True)
            for _ in range(min(self.cell.concurrency, requests))
        ]
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.join()
        outcome.wall = self.clock() - began
        return outcome

    def _stream(self, numbers: Iterator[int], lock: Lock, outcome: Outcome, began: float) -> None:
        while True:
            with lock:
                # A server that refuses the shape, or is gone, is not asked for the rest of it.
                if outcome.errors or next(numbers, None) is None:
                    return
                body = full_length_body(self.server, self.prompt(), self.cell.output)
            start = self.clock() - began
            try:
                completion = complete(self.server, body, self.clock)
                with lock:
                    outcome.done.append((start, completion))
            except ChatError as error:
                with lock:
                    outcome.errors.append(error)


def measure(batch: Batch, repeats: int, warmups: int) -> dict[str, Any]:
    """Return the record of one cell; its state is ok, infeasible or failed, never nothing."""
    warm = batch.run(warmups * batch.cell.concurrency)
    if warm.errors:
        return record(batch.cell, Outcome(errors=warm.errors), warm)
    return record(batch.cell, batch.run(repeats * batch.cell.concurrency), warm)


def record(cell: Cell, outcome: Outcome, warm: Outcome) -> dict[str, Any]:
    """Return a cell's figures; the aggregate is tokens over wall time, no mean of rates."""
    done = [completion for _, completion in outcome.done]
    state, message = verdict(cell, outcome)
    return {
        "id": cell.id,
        **asdict(cell),
        "state": state,
        "message": message,
        "wall_s": outcome.wall,
        "tokens": outcome.tokens,
        "aggregate_tokens_per_s": outcome.tokens / outcome.wall if outcome.wall else None,
        "ttft_s": spread(c.ttft for c in done),
        "tpot_s": spread(c.tpot for c in done),
        "latency_s": spread(c.latency for c in done),
        "prompt_tokens": spread(c.prompt_tokens for c in done),
        "requests": [{"start_s": start, **c.record()} for start, c in outcome.done],
        "warmups": [{"start_s": start, **c.record()} for start, c in warm.done],
        "partial": [e.partial.record() for e in outcome.errors if e.partial],
    }


def verdict(cell: Cell, outcome: Outcome) -> tuple[str, str | None]:
    """Return ok, infeasible or failed, and why."""
    troubles = Counter(error.trouble for error in outcome.errors)
    if troubles[Trouble.INFEASIBLE]:
        words = next(e for e in outcome.errors if e.trouble is Trouble.INFEASIBLE)
        return "infeasible", str(words)
    if outcome.errors:
        first = outcome.errors[0]
        return "failed", f"{len(outcome.errors)} requests failed, {first.trouble}: {first}"
    lengths = Counter(c.tokens for _, c in outcome.done)
    if set(lengths) != {cell.output}:
        seen = ", ".join(f"{n} of {tokens} tokens" for tokens, n in sorted(lengths.items()))
        return "ok", f"answers ended early: {seen}; {cell.output} were asked for"
    return "ok", None
