"""The figures of a stream that vLLM 0.32.0 really sent, against vLLM's own definitions."""

import json

import pytest

from files.bench.stream import Completion, StreamReader
from tests.bench.replay import recording


def read_all() -> Completion:
    reader = StreamReader(0.0)
    for at, line in recording():
        reader.feed(line, at)
    return reader.completion


def as_vllm_bench_serve_counts() -> tuple[float, float]:
    """Return (ttft, tpot) by the steps of vllm/benchmarks/lib/endpoint_request_func.py (0.32.0)."""
    ttft = latency = tokens = None
    for at, line in recording():
        data = line.removeprefix(b"data: ")
        if data == b"[DONE]":
            continue
        event = json.loads(data)
        if event.get("choices"):
            ttft = at if ttft is None else ttft
            latency = at
        elif event.get("usage"):
            tokens = event["usage"]["completion_tokens"]
    assert ttft is not None
    assert latency is not None
    assert tokens is not None
    return ttft, (latency - ttft) / (tokens - 1)


def test_every_token_of_a_real_stream_is_counted() -> None:
    done = read_all()
    assert (done.tokens, done.completion_tokens, done.prompt_tokens) == (128, 128, 9)
    assert (done.finish_reason, done.done, done.complaint) == ("length", True, None)
    assert done.text.startswith("A GPU is a processor that runs many threads at once.")


def test_the_figures_are_those_of_vllm_bench_serve() -> None:
    ttft, tpot = as_vllm_bench_serve_counts()
    done = read_all()
    # vLLM begins with a chunk of the role alone, which we do not take for a token.
    assert done.ttft == pytest.approx(ttft, rel=0.03)
    assert done.tpot == pytest.approx(tpot, rel=0.001)
