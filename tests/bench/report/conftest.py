"""A measurement that a harness made, and the run that becomes of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from files.bench.figures import spread
from files.bench.harness import Harness
from files.bench.plan import Method, Plan
from report.assemble import run_of
from report.schema import Run, dumps, parse, parse_measurement
from tests.bench.fake_server import Body, FakeServer, Refusal, obedient, prompt_words

METHOD = Method(
    contexts=(64, 200, 900),
    outputs=(4,),
    concurrencies=(1, 2),
    concurrency_context=64,
    concurrency_output=4,
    repeats=2,
)
ABOUT = {
    "host": "@ssm/i-0123456789abcdef0",
    "profile": "g5g",
    "runtime": "vllm",
    "software": {"vllm": "0.28.0"},
    "streamed_bytes_per_token": 4.514e9,
    "streamed_bytes_evidence": "source",
}


def smoke_record(read: float = 277.0) -> dict[str, Any]:
    figures = {
        name: {**(spread([value * 0.99, value, value * 1.01]) or {}), "wrong": None}
        for name, value in {"read": read, "copy": 234.3, "write": 250.0, "scale": 230.0}.items()
    }
    return {
        "at": "2026-11-30T10:00:00Z",
        "passed": True,
        "complaints": [],
        "bandwidth": {
            "figures": figures,
            "peak_gb_per_s": 320.064,
            "plain_copy_gb_per_s": 234.9,
            "method": {"buffer_bytes": 1 << 32},
        },
    }


def limited(body: Body) -> list[bytes] | Refusal:
    if prompt_words(body) > 600:
        return Refusal(400, {"message": "maximum context length is 600 <tokens>"})
    return obedient(body)


@pytest.fixture
def measurement(server: FakeServer, tmp_path: Path) -> dict[str, Any]:
    """What a harness left on a host, by a clock that ticks once a look."""
    server.answer = limited
    attached = tmp_path / "smoke.json"
    attached.write_text(json.dumps(smoke_record()))
    asked = {"url": server.url, "model": "gemma-4", "timeout": 1e9}
    plan = Plan(asked, METHOD, attach={"smoke": str(attached)}, about=ABOUT)
    ticks = iter(range(10_000_000))
    directory = tmp_path / "run"
    Harness(plan, directory, plan.client(), lambda _: None, lambda: float(next(ticks))).run()
    found: dict[str, Any] = json.loads((directory / "run.json").read_text())
    return found


def assembled(measurement: dict[str, Any]) -> Run:
    return run_of(parse_measurement(json.dumps(measurement), "it"))


@pytest.fixture
def run(measurement: dict[str, Any]) -> Run:
    return assembled(measurement)


def slower(run: Run, factor: float, **fields: Any) -> Run:
    """Return a run in which every time and rate is `factor` times as much."""
    document = json.loads(dumps(run))
    for cell in document["cells"]:
        for name in ("ttft_s", "tpot_s", "batches_tokens_per_s"):
            for key in ("median", "min", "max", "mean") if cell[name] else ():
                cell[name][key] *= factor
    return parse(json.dumps(document | fields), "a slower run")
