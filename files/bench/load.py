"""One cell measured: closed-loop streams against the server, and what came of every request."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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


def measure(batch: Batch, repeats: int, warmups: int, requests: int) -> dict[str, Any]:
    """Return the record of one cell: `repeats` batches of `requests` a stream, after warm-ups.

    Its state is ok, infeasible or failed, never nothing; after an error no further batch is begun.
    """
    streams = batch.cell.concurrency
    warm = _batches(batch, warmups, streams)
    if any(outcome.errors for outcome in warm):
        return record(batch.cell, [Outcome(errors=warm[-1].errors)], warm)
    return record(batch.cell, _batches(batch, repeats, requests * streams), warm)


def _batches(batch: Batch, repeats: int, requests: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while len(outcomes) < repeats and not (outcomes and outcomes[-1].errors):
        outcomes.append(batch.run(requests))
    return outcomes


def record(cell: Cell, outcomes: Sequence[Outcome], warm: Sequence[Outcome]) -> dict[str, Any]:
    """Return a cell's figures; the aggregate is tokens over wall time, no mean of rates."""
    done = [completion for outcome in outcomes for _, completion in outcome.done]
    errors = [error for outcome in outcomes for error in outcome.errors]
    wall = sum(outcome.wall for outcome in outcomes)
    tokens = sum(outcome.tokens for outcome in outcomes)
    state, message = verdict(cell, done, errors)
    return {
        "id": cell.id,
        **asdict(cell),
        "state": state,
        "message": message,
        "wall_s": wall,
        "tokens": tokens,
        "aggregate_tokens_per_s": tokens / wall if wall else None,
        "batches_tokens_per_s": spread(o.tokens / o.wall for o in outcomes if o.wall),
        "ttft_s": spread(c.ttft for c in done),
        "tpot_s": spread(c.tpot for c in done),
        "latency_s": spread(c.latency for c in done),
        "prompt_tokens": spread(c.prompt_tokens for c in done),
        "requests": _requests(outcomes),
        "warmups": _requests(warm),
        "partial": [error.partial.record() for error in errors if error.partial],
    }


def _requests(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {"batch": number, "start_s": start, **completion.record()}
        for number, outcome in enumerate(outcomes)
        for start, completion in outcome.done
    ]


def verdict(
    cell: Cell, done: Sequence[Completion], errors: Sequence[ChatError]
) -> tuple[str, str | None]:
    """Return ok, infeasible or failed, and why."""
    infeasible = [error for error in errors if error.trouble is Trouble.INFEASIBLE]
    if infeasible:
        return "infeasible", str(infeasible[0])
    if errors:
        count = f"{len(errors)} of {len(done) + len(errors)} requests failed"
        return "failed", f"{count}, {errors[0].trouble}: {errors[0]}"
    lengths = Counter(completion.tokens for completion in done)
    if set(lengths) == {cell.output}:
        return "ok", None
    seen = ", ".join(f"{n} of {tokens} tokens" for tokens, n in sorted(lengths.items()))
    # A server can cut an answer to the room that its context has left, and call that its length.
    if any(c.finish_reason == "length" and c.tokens < cell.output for c in done):
        return "infeasible", f"no room for the answer: {seen}; {cell.output} were asked for"
    return "ok", f"answers ended early: {seen}; {cell.output} were asked for"
