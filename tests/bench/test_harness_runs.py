"""Runs that are whole, interrupted, set aside, terminated, or without a server."""

import argparse
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from files.bench.harness import alone, set_aside
from files.bench.harness import main as run_harness
from files.bench.plan import Plan
from tests.bench.fake_server import Body, FakeServer, obedient, unused_url
from tests.bench.harnessed import SMALL, by_id, harness, plan_for

FILES = Path(__file__).resolve().parents[2] / "files"


def test_an_interrupted_run_goes_on_where_it_was(server: FakeServer, tmp_path: Path) -> None:
    def interrupted(line: str) -> None:
        raise KeyboardInterrupt

    first = harness(server, tmp_path)
    first.say = interrupted
    with pytest.raises(KeyboardInterrupt):
        first.run()
    begun = json.loads((tmp_path / "plan.json").read_text())
    assert [path.stem for path in (tmp_path / "cells").iterdir()] == ["ladder-c1-in64-out4"]
    kept = json.loads((tmp_path / "cells" / "ladder-c1-in64-out4.json").read_text())

    run = harness(server, tmp_path).run()

    assert (run["id"], run["started"]) == (begun["id"], begun["started"])
    assert by_id(run)["ladder-c1-in64-out4"] == kept


def test_half_a_cell_file_is_measured_again(server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "ladder-c1-in64-out4.json").write_text('{"state": "o')
    assert by_id(harness(server, tmp_path).run())["ladder-c1-in64-out4"]["state"] == "ok"


def test_a_whole_run_is_set_aside_and_half_a_run_is_not(server: FakeServer, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    run = harness(server, directory, about={"profile": "cpu"}, attach={"build": "/nowhere"}).run()
    assert (run["about"], run["attached"]) == ({"profile": "cpu"}, {"build": None})
    set_aside(directory)
    assert (tmp_path / run["id"] / "run.json").exists()
    (directory / "cells").mkdir(parents=True)
    set_aside(directory)
    assert (directory / "cells").exists()


def command(tmp_path: Path) -> list[str]:
    return [sys.executable, "-B", "-m", "bench", "run", "--out", str(tmp_path / "run")]


def test_the_command_runs_a_plan_from_stdin(server: FakeServer, tmp_path: Path) -> None:
    text = json.dumps(asdict(plan_for(server)))
    ended = subprocess.run(
        command(tmp_path), input=text, cwd=FILES, capture_output=True, text=True, check=True
    )
    first, *_, last = ended.stdout.splitlines()
    assert first.startswith("[1/4] 64 in, 4 out, 1 at a time: ")
    assert last.startswith("4 cells, 0 failed")
    assert "Traceback" not in ended.stderr


def test_a_terminated_run_says_how_to_go_on(server: FakeServer, tmp_path: Path) -> None:
    running = subprocess.Popen(
        command(tmp_path), cwd=FILES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def terminating(body: Body) -> list[bytes]:
        if len(server.requests) == 20:
            os.kill(running.pid, signal.SIGTERM)
        return obedient(body)

    server.answer = terminating
    output, _ = running.communicate(json.dumps(asdict(plan_for(server))))
    assert running.returncode == 130
    assert output.splitlines()[-1].endswith("run again to go on")
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_server_that_is_down_fails_every_cell_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan({"url": unused_url(), "model": "tiny"}, SMALL)
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asdict(plan))))
    assert run_harness(argparse.Namespace(out=tmp_path, again=False)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert sum("Is the server up?" in line for line in lines) == 4
    assert len(list((tmp_path / "cells").iterdir())) == 4
    assert not (tmp_path / "run.json").exists()


def test_only_one_at_a_time_measures(tmp_path: Path) -> None:
    with (
        alone(tmp_path, print),
        (tmp_path / "lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
