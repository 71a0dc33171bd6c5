"""Single-stream speed and the sense of what is said, judged from the client's side."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from .chat import ChatError, Clock, Server, chat_body, complete, full_length_body, read_key
from .figures import spread
from .prompt import nonce
from .stream import Completion
from .text import degenerate, unexpected

SCHEMA = "vllm-g5g/throughput/1"
# Long enough that no model ends before 256 tokens, where the end of a text is heeded.
TASK = "Explain in detail, step by step, how a computer program is loaded and run."


def measure(
    server: Server,
    question: str,
    expect: str,
    lengths: list[int],
    repeats: int,
    clock: Clock = time.monotonic,
) -> dict[str, Any]:
    """Ask the question, then time `repeats` completions of each length after one warm-up.

    Never raises for what the server does: every complaint is in `complaints`, beside what was
    measured until then.
    """
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "server": {
            "url": server.url,
            "model": server.model,
            "full_length": dict(server.full_length),
        },
        "method": {"lengths": lengths, "repeats": repeats, "task": TASK, "temperature": 0},
        "complaints": [],
    }
    try:
        report["answer"] = _answer(server, question, expect, clock)
        report["runs"] = []
        for tokens in lengths:
            report["runs"].append(_length(server, tokens, repeats, clock))
    except ChatError as error:
        report["complaints"].append(f"{error.trouble}: {error}")
        if error.partial is not None:
            report["partial"] = {**error.partial.record(), "text": error.partial.text}
    report["complaints"] += [r["complaint"] for r in _judged(report) if r["complaint"]]
    return report


def _judged(report: dict[str, Any]) -> list[dict[str, Any]]:
    runs = report.get("runs", [])
    return [
        *([report["answer"]] if "answer" in report else []),
        *(repeat for run in runs for repeat in run["repeats"]),
    ]


def _answer(server: Server, question: str, expect: str, clock: Clock) -> dict[str, Any]:
    # Word for word and with its natural end: a small checkpoint knows its questions by heart.
    done = complete(server, chat_body(server, question, 128), clock)
    complaint = unexpected(done.text or done.reasoning, expect)
    return {"question": question, "expect": expect, **_record(done, complaint)}


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)
    parser.add_argument("--question", required=True)
    parser.add_argument("--expect", required=True, help="a regular expression for the answer")
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--repeats", type=int, default=3)


def main(options: argparse.Namespace, show: Callable[[Any], None]) -> int:
    """Measure, `show` the report; exit status 1 where there is something to complain of."""
    report = measure(
        server_of(options), options.question, options.expect, options.lengths, options.repeats
    )
    show(report)
    for complaint in report["complaints"]:
        print(complaint, file=sys.stderr)
    return 1 if report["complaints"] else 0
