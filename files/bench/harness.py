"""A whole benchmark: cell after cell, each kept as soon as it is measured, so that it resumes.

The directory of a run holds `plan.json`, `cells/ID.json` and, once it is whole, `run.json`. A
second start of the same run waits for the first and then finds nothing left to do.
"""

import argparse
import fcntl
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .chat import ChatError, Clock, Server, chat_body, complete
from .figures import write_json
from .load import Batch, Outcome, measure, record
from .machine import describe
from .metrics import hit_rate, read_counters
from .plan import Cell, Plan, PlanError, parse
from .prompt import nonce, prompt, words_for

SCHEMA = "vllm-g5g/measurement/1"
INTERRUPTED = 130  # as a shell says it: 128 + SIGINT


@dataclass
class Harness:
    """One run in one directory. `say` gets a line of progress at a time."""

    plan: Plan
    directory: Path
    server: Server
    say: Callable[[str], None]
    clock: Clock = time.monotonic

    def run(self) -> dict[str, Any]:
        """Measure what is not measured yet; return the whole and keep it as run.json.

        Where every cell failed there is no run to keep: the next start tries each again.
        """
        cells = self.plan.method.cells()
        begun = self._begun()
        finished: list[dict[str, Any]] = []
        words: dict[int, int | ChatError] = {}
        for number, cell in enumerate(cells, 1):
            known = self._kept(cell)
            result = known or self._measure(cell, words)
            finished.append(result)
            self.say(f"[{number}/{len(cells)}] {line(result)}{' (kept)' if known else ''}")
        whole = {**begun, "ended": utc_now(), **self._circumstances(), "cells": finished}
        if any(cell["state"] != "failed" for cell in finished):
            write_json(self.directory / "run.json", whole)
        return whole

    def _circumstances(self) -> dict[str, Any]:
        return {
            "method": asdict(self.plan.method),
            "about": dict(self.plan.about),
            "machine": describe(),
            "attached": {name: attached(Path(p)) for name, p in self.plan.attach.items()},
        }

    def _begun(self) -> dict[str, Any]:
        """Return the run's identity, made at its first start and found again at later ones."""
        path = self.directory / "plan.json"
        try:
            begun: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):
            started = utc_now()
            stamp = started.replace("-", "").replace(":", "")
            begun = {"schema": SCHEMA, "id": f"{stamp}-{self.plan.digest[:8]}", "started": started}
            begun |= {"digest": self.plan.digest, "server": dict(self.plan.server)}
            write_json(path, begun)
        return begun

    def _kept(self, cell: Cell) -> dict[str, Any] | None:
        """Return a cell of an earlier start; a failed one is measured again."""
        try:
            kept: dict[str, Any] = json.loads(self._path(cell).read_text())
        except (OSError, ValueError):
            return None
        return kept if kept["state"] != "failed" else None

    def _path(self, cell: Cell) -> Path:
        return self.directory / "cells" / f"{cell.id}.json"

    def _measure(self, cell: Cell, words: dict[int, int | ChatError]) -> dict[str, Any]:
        if cell.context not in words:
            words[cell.context] = self._sized(cell.context)
        size = words[cell.context]
        if isinstance(size, ChatError):
            result = record(cell, [Outcome(errors=[size])], [])
        else:
            result = self._with_cache_hits(cell, size)
        write_json(self._path(cell), result)
        return result

    def _with_cache_hits(self, cell: Cell, words: int) -> dict[str, Any]:
        method, names = self.plan.method, self.plan.prefix_counters
        batch = Batch(self.server, cell, lambda: self._prompt(words), self.clock)
        before = read_counters(self.server, self.plan.metrics, names)
        requests = method.requests_per_stream if cell.kind == "concurrency" else 1
        result = measure(batch, method.repeats, method.warmups, requests)
        after = read_counters(self.server, self.plan.metrics, names)
        rate = hit_rate(before, after) if len(names) == 2 else None
        return result | {"prefix_hit_rate": rate}

    def _prompt(self, words: int) -> str:
        return prompt(words, nonce() if self.plan.method.nonce else "0" * len(nonce()))

    def _sized(self, context: int) -> int | ChatError:
        """Return the words of a prompt of `context` tokens, or why the server will not take it."""
        try:
            return words_for(context, self._count_tokens)[0]
        except ChatError as error:
            return error

    def _count_tokens(self, words: int) -> int:
        text = self._prompt(words)
        try:
            done = complete(self.server, chat_body(self.server, text, 1), self.clock)
        except ChatError as error:
            # The one token may well be one that shows as no text: the count is what matters.
            if error.partial is None or error.partial.prompt_tokens is None:
                raise
            done = error.partial
        # A server that gives no usage: ordinary prose has about four tokens to three words.
        return done.prompt_tokens or round(len(text.split()) * 4 / 3)


def line(cell: dict[str, Any]) -> str:
    """Return what is worth a line of the terminal about a cell."""
    load = f"{cell['context']} in, {cell['output']} out, {cell['concurrency']} at a time"
    if cell["state"] != "ok":
        return f"{load}: {cell['state']}: {cell['message']}"
    figures = f"{cell['aggregate_tokens_per_s']:.2f} tokens/s"
    if cell["tpot_s"]:
        figures += f", {cell['tpot_s']['median'] * 1e3:.2f} ms a token"
    return f"{load}: {figures}, first after {cell['ttft_s']['median'] * 1e3:.0f} ms"


def attached(path: Path) -> Any:
    """Return the JSON in a file, or None where there is none to be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def utc_now() -> str:
    """Return the wall clock, for people; no figure is made from it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def set_aside(directory: Path) -> None:
    """Move a whole run out of the way, so that the next start is a new one; keep half a run."""
    whole = directory / "run.json"
    if whole.exists():
        directory.rename(directory.with_name(json.loads(whole.read_text())["id"]))


@contextmanager
def alone(directory: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a run: two at once would measure each other."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("the same run is being measured already: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="directory of the run")
    parser.add_argument("--again", action="store_true", help="even if it is whole already")


def main(options: argparse.Namespace) -> int:
    """Read the plan from stdin and measure; exit 0 whole, 1 all cells failed, 130 interrupted.

    A connection that breaks takes the terminal, not the run: it goes on without being heard.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        plan = parse(sys.stdin.read())
        if options.again:
            set_aside(options.out)
        with alone(options.out, heard):
            whole = Harness(plan, options.out, plan.client(), heard).run()
    except PlanError as error:
        heard(f"bench: {error}")
        return 2
    except KeyboardInterrupt:
        heard(f"interrupted; the cells so far are in {options.out}: run again to go on")
        return INTERRUPTED
    failed = [cell for cell in whole["cells"] if cell["state"] == "failed"]
    heard(f"{len(whole['cells'])} cells, {len(failed)} failed: {options.out}/run.json")
    return 1 if len(failed) == len(whole["cells"]) else 0


def heard(text: str) -> None:
    """Print a line, whether or not anyone still listens."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115 - open for as long as the run goes on
