"""The benchmark against servers that nobody here wrote, and against `vllm bench serve`."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desired import places
from report.schema import Run, read
from tests.bench.replay import replaying
from tests.container import pyinfra_run
from tests.container.host import ROOT
from tests.container.stand_in import StandIn

PYTHON = "/opt/pytorch/bin/python3"
MODEL = f"{places.STATE}/models/tiny"
AGREEMENT = 0.03  # of TPOT and throughput, the bar that the benchmark was built to
REQUESTS = 6
# The recording is of 128 tokens, whatever a client asks for.
METHOD = {"contexts": [64], "outputs": [128], "concurrencies": [2], "repeats": 3, "warmups": 1}
MEASURED = "Ensure a benchmark of what is served is in"


@pytest.fixture
def benched(host: StandIn, tmp_path: Path) -> Run:
    """A run of bench.py on the converged host, small, with one context that cannot fit."""
    run = bench(host, tmp_path)
    assert run.code == 0, run.log[-4000:]
    (kept,) = tmp_path.glob("*.json")
    return read(kept)


def bench(host: StandIn, reports: Path) -> pyinfra_run.Run:
    small = {"bench_contexts": [64, 2048], "bench_outputs": [8], "bench_concurrencies": [1, 2]}
    data = {**host.data, **small, "bench_repeats": 1, "bench_reports": str(reports)}
    return pyinfra_run.run(host.host, data, deploy="bench.py")


def test_a_real_vllm_is_measured_once_and_reported_here(
    host: StandIn, benched: Run, tmp_path: Path
) -> None:
    states = {cell.id: cell.state for cell in benched.cells}
    assert states == {
        "ladder-c1-in64-out8": "ok",
        "ladder-c1-in2048-out8": "infeasible",
        "concurrency-c1-in512-out128": "ok",
        "concurrency-c2-in512-out128": "ok",
    }
    assert (benched.runtime, benched.model) == ("vllm", "tiny-gemma-4")
    assert benched.bandwidth is not None  # of the smoke check that the deploy made
    assert benched.software["build"]["outputs"]["version"] == "0.32.0+cpu"
    (cell,) = [cell for cell in benched.cells if cell.state == "infeasible"]
    assert re.search("context length|no room for the answer", cell.message or "")
    assert bench(host, tmp_path).clean


def test_every_prompt_was_new_to_the_prefix_cache(benched: Run) -> None:
    rates = [cell.prefix_hit_rate for cell in benched.cells if cell.state == "ok"]
    assert all(rate is not None and rate < 0.25 for rate in rates)


def by_vllm(host: StandIn, url: str, streams: int) -> dict[str, Any]:
    """Return what `vllm bench serve` of the container makes of a server."""
    host.run(
        f"cd /tmp && HF_HUB_OFFLINE=1 {PYTHON} -P -m vllm.entrypoints.cli.main bench serve "
        "--backend openai-chat --endpoint /v1/chat/completions --dataset-name random "
        f"--base-url {url} --model tiny --tokenizer {MODEL} --ignore-eos --temperature 0 "
        f"--random-input-len 64 --random-output-len 128 --num-prompts {REQUESTS} "
        f"--max-concurrency {streams} --num-warmups {streams} "
        "--save-result --result-dir /tmp --result-filename vllm-bench.json"
    )
    result: dict[str, Any] = json.loads(host.run("cat /tmp/vllm-bench.json"))
    assert (result["failed"], result["completed"]) == (0, REQUESTS)
    return result


def by_us(url: str, directory: Path) -> dict[str, Any]:
    plan = {"server": {"url": url, "model": "tiny"}, "method": METHOD}
    command = [sys.executable, "-B", "-m", "bench", "run", "--out", str(directory)]
    subprocess.run(command, input=json.dumps(plan), cwd=ROOT / "files", text=True, check=True)
    cells = json.loads((directory / "run.json").read_text())["cells"]
    return {cell["kind"]: cell for cell in cells}


def test_vllm_bench_serve_measures_the_same(host: StandIn, tmp_path: Path) -> None:
    """Both clients against one truth: a stream that vLLM sent, replayed at its own pace.

    A server that computes while others use the machine gives either of them another speed each
    time: 15 % lay between repeats of one client when both were tried against one.
    """
    with replaying() as server:
        ours = by_us(server.url, tmp_path)
        alone, together = by_vllm(host, server.url, 1), by_vllm(host, server.url, 2)
    tpot = ours["ladder"]["tpot_s"]["median"] * 1e3
    assert tpot == pytest.approx(alone["median_tpot_ms"], rel=AGREEMENT)
    for cell, theirs in ((ours["ladder"], alone), (ours["concurrency"], together)):
        speed = cell["aggregate_tokens_per_s"]
        assert speed == pytest.approx(theirs["output_throughput"], rel=AGREEMENT)
