"""Single-stream speed and the sense of what is said, judged from the client's side."""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from .chat import ChatError, Clock, Server, chat_body, complete, full_length_body, read_key
from .figures import spread
from .prompt import nonce
from .stream import Completion
from .text import degenerate, unexpected

SCHEMA = "vllm-g5g/throughput/1"
# Long enough that no model ends before 256 tokens, where the end of a text is heeded.
TASK = "Explain in detail, step by step, how a computer program is loaded and run."
ANSWER_TOKENS = 128


@dataclass(frozen=True)
class Trial:
    """What is asked: a question whose answer must match `expect`, then timed texts."""

    question: str
    expect: str  # a regular expression
    lengths: list[int]  # tokens
    repeats: int  # of each length, after one warm-up


def measure(server: Server, trial: Trial, clock: Clock = time.monotonic) -> dict[str, Any]:
    """Ask the question, then time the texts.

    Never raises for what the server does: every complaint is in `complaints`, beside what was
    measured until then.
    """
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "server": {"url": server.url, "model": server.model},
        "method": {**asdict(trial), "task": TASK, "full_length": dict(server.full_length)},
        "complaints": [],
        "runs": [],
    }
    try:
        report["answer"] = _answer(server, trial, clock)
        for tokens in trial.lengths:
            report["runs"].append(_length(server, tokens, trial.repeats, clock))
    except ChatError as error:
        report["complaints"].append(f"{error.trouble}: {error}")
        if error.partial is not None:
            report["partial"] = {**error.partial.record(), "text": error.partial.text}
    report["complaints"] += [r["complaint"] for r in _judged(report) if r["complaint"]]
    return report


def _judged(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        *([report["answer"]] if "answer" in report else []),
        *(repeat for run in report["runs"] for repeat in run["repeats"]),
    ]


def _answer(server: Server, trial: Trial, clock: Clock) -> dict[str, Any]:
    # Word for word and with its natural end: a small checkpoint knows its questions by heart.
    done = complete(server, chat_body(server, trial.question, ANSWER_TOKENS), clock)
    return _record(done, unexpected(done.text or done.reasoning, trial.expect))


def _length(server: Server, tokens: int, repeats: int, clock: Clock) -> dict[str, Any]:
    def once() -> dict[str, Any]:
        body = full_length_body(server, f"{nonce()} {TASK}", tokens)
        done = complete(server, body, clock)
        return _record(done, _complaint(server, done, tokens))

    warmup, runs = once(), [once() for _ in range(repeats)]
    speeds = spread(1 / run["tpot_s"] for run in runs if run["tpot_s"])
    return {
        "tokens_asked": tokens,
        "warmup": warmup,
        "repeats": runs,
        "decode_tokens_per_s": speeds,
        "end_to_end_tokens_per_s": spread(run["tokens"] / run["latency_s"] for run in runs),
        "ttft_s": spread(run["ttft_s"] for run in runs),
        "tpot_s": spread(run["tpot_s"] for run in runs),
    }


def _complaint(server: Server, done: Completion, asked: int) -> str | None:
    """Judge a timed text; past an end that was ignored, a text need not make sense."""
    if done.tpot is None:
        return f"{done.tokens} tokens came in {len(done.arrivals)} chunk: no decode speed in that"
    if done.tokens > asked:
        return f"{done.tokens} tokens came, {asked} were asked for"
    return None if server.full_length else degenerate(done.text or done.reasoning)


def _record(done: Completion, complaint: str | None) -> dict[str, Any]:
    return {**done.record(), "text": done.text or done.reasoning, "complaint": complaint}


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", required=True, help="the name the server serves it under")
    parser.add_argument("--api-key-file", help="a file with the key, or with NAME=key")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a request may take")
    parser.add_argument(
        "--full-length",
        type=json.loads,
        default={},
        help="JSON fields that make this server generate past the end, such as ignore_eos",
    )


def server_of(options: argparse.Namespace) -> Server:
    """Return the server that the arguments name. Raises OSError where the key file is absent."""
    key = read_key(options.api_key_file)
    return Server(options.url, options.model, key, options.timeout, options.full_length)


def trial_of(options: argparse.Namespace) -> Trial:
    return Trial(options.question, options.expect, options.lengths, options.repeats)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)
    parser.add_argument("--question", required=True)
    parser.add_argument("--expect", required=True, help="a regular expression for the answer")
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--repeats", type=int, default=3)


def main(options: argparse.Namespace) -> int:
    """Measure and print the report; exit status 1 where there is something to complain of."""
    report = measure(server_of(options), trial_of(options))
    print(json.dumps(report), flush=True)
    for complaint in report["complaints"]:
        print(complaint, file=sys.stderr)
    return 1 if report["complaints"] else 0
