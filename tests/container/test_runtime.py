"""The other runtime, on the same checkpoint, in the same container; and back."""

from pathlib import Path

import pytest

from desired import places
from report.schema import read
from tests.container import pyinfra_run
from tests.container.stand_in import StandIn

KNOB = {"runtime": "transformers"}
SMALL = {"bench_contexts": [64], "bench_outputs": [8], "bench_concurrencies": [1]}


def active(host: StandIn, unit: str) -> str:
    return host.attempt(f"systemctl is-active {unit}").stdout.strip()


@pytest.fixture
def on_transformers(host: StandIn) -> StandIn:
    run = host.converge(**KNOB)
    assert run.code == 0, run.log[-4000:]
    return host


def test_switching_the_runtime_converges_and_back(on_transformers: StandIn) -> None:
    host = on_transformers
    assert (active(host, "transformers.service"), active(host, "vllm.service")) == (
        "active",
        "inactive",
    )
    assert host.converge(**KNOB).clean
    back = host.converge()
    assert back.code == 0, back.log[-4000:]
    assert (active(host, "transformers.service"), active(host, "vllm.service")) == (
        "inactive",
        "active",
    )
    assert host.run("ls /etc/systemd/system").count("transformers") == 0
    assert host.converge().clean


def test_the_benchmark_measures_transformers_serve_too(
    on_transformers: StandIn, tmp_path: Path
) -> None:
    host = on_transformers
    data = {**host.data, **SMALL, **KNOB, "bench_repeats": 1, "bench_reports": str(tmp_path)}
    run = pyinfra_run.run(host.host, data, deploy="bench.py")
    assert run.code == 0, run.log[-4000:]
    (kept,) = tmp_path.glob("*.json")
    found = read(kept)
    assert (found.runtime, found.model) == ("transformers", f"{places.STATE}/models/tiny")
    assert {cell.state for cell in found.cells} == {"ok"}
    assert {request.tokens_from for cell in found.cells for request in cell.requests} == {"usage"}
    assert found.readiness is not None  # of the start that the switch was
    assert found.readiness["healthy_s"] is not None
    assert host.converge().code == 0
