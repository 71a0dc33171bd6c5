"""`bench.py`'s operation against this machine: measures once, resumes, keeps the report here."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from files.bench.plan import Method
from operations import filesystem
from operations.bench import Benchmark, Places, measured
from operations.filesystem import Directory
from operations.smoke import program_files
from report.schema import read
from tests.bench.fake_server import FakeServer, unused_url
from tests.unit.converge import converge, plan_of

METHOD = Method(
    contexts=(64,),
    outputs=(4, 8),
    concurrencies=(1, 2),
    concurrency_context=64,
    concurrency_output=4,
    repeats=2,
)


@pytest.fixture
def arguments(server: FakeServer, tmp_path: Path) -> dict[str, Any]:
    places = Places(str(tmp_path / "lib"), str(tmp_path / "runs"), tmp_path / "reports")
    entries = [Directory(places.programs), *program_files(places.programs)]
    converge(filesystem.present, entries=entries)
    about = {"host": "@local", "runtime": "fake", "software": {"vllm": "1.2.3"}}
    benchmark = Benchmark(server.url, "tiny", METHOD, about=about)
    return {"benchmark": benchmark, "served": [str(tmp_path / "stamp")], "places": places}


def reports(arguments: dict[str, Any]) -> list[Path]:
    return sorted(arguments["places"].reports.glob("*.json"))


def test_a_run_is_measured_once_and_kept_here(arguments: dict[str, Any]) -> None:
    assert plan_of(measured, **arguments)
    assert converge(measured, **arguments)
    (path,) = reports(arguments)
    run = read(path)
    assert (run.host, run.runtime, run.model) == ("@local", "fake", "tiny")
    assert [cell.state for cell in run.cells] == ["ok"] * 4
    assert "<svg" in path.with_suffix(".html").read_text()
    assert not plan_of(measured, **arguments)
    assert not converge(measured, **arguments)


def test_another_build_is_another_run(arguments: dict[str, Any], tmp_path: Path) -> None:
    converge(measured, **arguments)
    (tmp_path / "stamp").write_text("another build")
    assert converge(measured, **arguments)
    assert not converge(measured, **arguments)


def test_a_lost_report_is_fetched_and_nothing_is_measured(
    arguments: dict[str, Any], server: FakeServer
) -> None:
    converge(measured, **arguments)
    shutil.rmtree(arguments["places"].reports)
    server.requests.clear()
    assert converge(measured, **arguments)
    assert len(reports(arguments)) == 1
    assert server.requests == []


def test_asked_for_again_it_is_measured_again(
    arguments: dict[str, Any], server: FakeServer
) -> None:
    converge(measured, **arguments)
    server.requests.clear()
    assert converge(measured, always=True, **arguments)
    assert server.requests


def test_a_server_that_is_down_fails_the_host(arguments: dict[str, Any]) -> None:
    arguments["benchmark"] = replace(arguments["benchmark"], url=unused_url())
    with pytest.raises(Exception, match="No hosts remaining"):
        converge(measured, **arguments)
    assert reports(arguments) == []


def test_a_run_that_does_not_validate_is_not_kept(arguments: dict[str, Any]) -> None:
    converge(measured, **arguments)
    shutil.rmtree(arguments["places"].reports)
    (kept,) = Path(arguments["places"].runs).glob("*/run.json")
    spoiled = json.loads(kept.read_text())
    spoiled["cells"][0]["tokens"] = "many"
    kept.write_text(json.dumps(spoiled))
    with pytest.raises(Exception, match="No hosts remaining"):
        converge(measured, **arguments)
    assert reports(arguments) == []
