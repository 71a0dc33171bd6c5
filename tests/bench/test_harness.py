"""The harness against a server that obeys, refuses, breaks and comes back."""

import argparse
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.bench.harness import Harness, alone, set_aside
from files.bench.harness import main as run_harness
from files.bench.machine import describe
from files.bench.metrics import counter, hit_rate
from files.bench.plan import Method, Plan, PlanError, parse
from files.bench.prompt import words_for
from tests.bench.fake_server import (
    DONE,
    Body,
    FakeServer,
    Refusal,
    delta,
    obedient,
    prompt_words,
    spoken,
    unused_url,
)

FILES = Path(__file__).resolve().parents[2] / "files"
SMALL = Method(
    contexts=(64, 128),
    outputs=(4,),
    concurrencies=(1, 3),
    concurrency_output=4,
    repeats=2,
)


def ticking() -> Any:
    seconds = iter(range(10_000_000))
    return lambda: float(next(seconds))


def plan_for(server: FakeServer, method: Method = SMALL, **fields: Any) -> Plan:
    return Plan({"url": server.url, "model": "tiny", "timeout": 1e9}, method, **fields)


def harness(server: FakeServer, directory: Path, method: Method = SMALL, **fields: Any) -> Harness:
    plan = plan_for(server, method, **fields)
    return Harness(plan, directory, plan.client(), lambda line: None, ticking())


def by_id(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in run["cells"]}


def test_every_cell_is_measured_and_the_aggregate_is_tokens_over_wall(
    server: FakeServer, tmp_path: Path
) -> None:
    run = harness(server, tmp_path).run()
    cells = by_id(run)
    assert list(cells) == [
        "ladder-c1-in64-out4",
        "ladder-c1-in128-out4",
        "concurrency-c1-in512-out4",
        "concurrency-c3-in512-out4",
    ]
    for cell in cells.values():
        assert (cell["state"], cell["message"]) == ("ok", None)
        assert cell["tokens"] == 4 * len(cell["requests"])
        assert cell["aggregate_tokens_per_s"] == cell["tokens"] / cell["wall_s"]
        assert abs(cell["prompt_tokens"]["median"] - cell["context"]) <= 1
    assert len(cells["ladder-c1-in64-out4"]["requests"]) == 2
    assert len(cells["concurrency-c3-in512-out4"]["requests"]) == 2 * 2 * 3
    assert cells["concurrency-c3-in512-out4"]["batches_tokens_per_s"]["n"] == 2
    assert len(cells["concurrency-c3-in512-out4"]["warmups"]) == 3
    assert json.loads((tmp_path / "run.json").read_text()) == json.loads(json.dumps(run))


def test_no_prefix_repeats_unless_the_nonce_is_off(server: FakeServer, tmp_path: Path) -> None:
    def beginnings() -> list[str]:
        return [body["messages"][0]["content"][:12] for body in server.requests]

    harness(server, tmp_path / "fresh").run()
    assert len(set(beginnings())) == len(server.requests)
    server.requests.clear()
    harness(server, tmp_path / "same", replace(SMALL, nonce=False)).run()
    assert len(set(beginnings())) == 1


def limited(body: Body) -> list[bytes] | Refusal:
    """A server of 100 tokens of context, in vLLM's words."""
    if prompt_words(body) + body["max_tokens"] > 100:
        words = "This model's maximum context length is 100 tokens."
        return Refusal(400, {"error": {"message": words, "type": "BadRequestError"}})
    return obedient(body)


def test_what_can_never_fit_is_recorded_with_the_servers_words(
    server: FakeServer, tmp_path: Path
) -> None:
    server.answer = limited
    cells = by_id(harness(server, tmp_path).run())
    assert cells["ladder-c1-in64-out4"]["state"] == "ok"
    for name in ("ladder-c1-in128-out4", "concurrency-c1-in512-out4"):
        assert cells[name]["state"] == "infeasible"
        assert "maximum context length is 100 tokens" in cells[name]["message"]


def test_a_prompt_that_fits_with_an_answer_that_does_not_is_infeasible(
    server: FakeServer, tmp_path: Path
) -> None:
    server.answer = limited
    method = replace(SMALL, contexts=(64,), outputs=(64,), concurrencies=())
    (cell,) = harness(server, tmp_path, method).run()["cells"]
    assert (cell["state"], cell["requests"]) == ("infeasible", [])


def test_failures_are_recorded_with_what_came_and_measured_again(
    server: FakeServer, tmp_path: Path
) -> None:
    def dying(body: Body) -> list[bytes]:
        cut = body["max_tokens"] == 4 and prompt_words(body) > 300
        return [delta(content="Hal"), delta(content="lo")] if cut else obedient(body)

    server.answer = dying
    cells = by_id(harness(server, tmp_path).run())
    failed = cells["concurrency-c3-in512-out4"]
    assert failed["state"] == "failed"
    assert "the stream was cut after 2 chunks" in failed["message"]
    assert failed["partial"][0]["chunks"] == 2
    assert cells["ladder-c1-in64-out4"]["state"] == "ok"

    server.answer, before = obedient, len(server.requests)
    cells = by_id(harness(server, tmp_path).run())
    assert {cell["state"] for cell in cells.values()} == {"ok"}
    again = [prompt_words(body) for body in server.requests[before:] if body["max_tokens"] == 4]
    assert min(again) > 300  # only the failed cells were measured again


def test_answers_that_end_early_are_said_so(server: FakeServer, tmp_path: Path) -> None:
    server.answer = lambda body: spoken(["a "] * min(3, body["max_tokens"]), finish="stop")
    cells = by_id(harness(server, tmp_path).run())
    assert (cells["ladder-c1-in64-out4"]["state"], cells["ladder-c1-in64-out4"]["message"]) == (
        "ok",
        "answers ended early: 2 of 3 tokens; 4 were asked for",
    )


def test_answers_cut_to_the_room_that_is_left_are_infeasible(
    server: FakeServer, tmp_path: Path
) -> None:
    """As vLLM 0.32.0 does it where the prompt alone still fits."""
    server.answer = lambda body: obedient({**body, "max_tokens": min(3, body["max_tokens"])})
    cell = by_id(harness(server, tmp_path).run())["ladder-c1-in64-out4"]
    assert cell["state"] == "infeasible"
    assert cell["message"] == "no room for the answer: 2 of 3 tokens; 4 were asked for"


def test_a_server_without_usage_is_measured_by_its_chunks(
    server: FakeServer, tmp_path: Path
) -> None:
    server.answer = lambda body: [
        *[delta(content="a ")] * body["max_tokens"],
        delta("length"),
        DONE,
    ]
    cell = by_id(harness(server, tmp_path).run())["ladder-c1-in64-out4"]
    assert (cell["state"], cell["prompt_tokens"]) == ("ok", None)
    assert cell["requests"][0]["tokens_from"] == "chunks"


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


def test_the_prefix_cache_is_watched_where_the_server_lets_us(
    server: FakeServer, tmp_path: Path
) -> None:
    def counting(body: Body) -> list[bytes]:
        asked = len(server.requests) * 100
        server.pages["/metrics"] = (
            f'queries_total{{engine="0"}} {asked}\nhits_total{{engine="0"}} {asked / 4}\n'
        )
        return obedient(body)

    server.answer = counting
    fields: dict[str, Any] = {"metrics": "/metrics"}
    fields["prefix_counters"] = ("queries_total", "hits_total")
    run = harness(server, tmp_path, **fields).run()
    assert by_id(run)["ladder-c1-in64-out4"]["prefix_hit_rate"] == 0.25


def test_full_length_fields_know_how_many_tokens_were_asked_for(
    server: FakeServer, tmp_path: Path
) -> None:
    fields = {"ignore_eos": True, "generation_config": '{"min_new_tokens": $tokens}'}
    plan = plan_for(server)
    plan = replace(plan, server={**plan.server, "full_length": fields})
    Harness(plan, tmp_path, plan.client(), lambda line: None, ticking()).run()
    (body, *_) = [body for body in server.requests if body["max_tokens"] == 4]
    assert (body["ignore_eos"], body["generation_config"]) == (True, '{"min_new_tokens": 4}')


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


def test_a_whole_run_is_set_aside_and_half_a_run_is_not(server: FakeServer, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    run = harness(server, directory, about={"profile": "cpu"}, attach={"build": "/nowhere"}).run()
    assert (run["about"], run["attached"]) == ({"profile": "cpu"}, {"build": None})
    set_aside(directory)
    assert (tmp_path / run["id"] / "run.json").exists()
    (directory / "cells").mkdir(parents=True)
    set_aside(directory)
    assert (directory / "cells").exists()


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
    assert run_harness(argparse.Namespace(out=tmp_path, again=False), print) == 1
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


BAD_PLANS = {
    "not JSON": "{",
    "no method": '{"server": {}}',
    "unknown knob": '{"server": {"url": "u", "model": "m"}, "method": {"repeets": 3}}',
    "no repeats": '{"server": {"url": "u", "model": "m"}, "method": {"repeats": 0}}',
    "context of text": '{"server": {"url": "u", "model": "m"}, "method": {"contexts": ["64"]}}',
    "no model": '{"server": {"url": "u"}, "method": {}}',
    "a list": "[]",
}


@pytest.mark.parametrize("text", BAD_PLANS.values(), ids=BAD_PLANS)
def test_a_bad_plan_is_refused_before_anything_is_asked(text: str) -> None:
    with pytest.raises(PlanError):
        parse(text)


def test_a_plan_survives_its_journey(server: FakeServer) -> None:
    plan = plan_for(server, metrics="/metrics", prefix_counters=("q", "h"))
    there = parse(json.dumps(asdict(plan)))
    assert there == plan
    assert there.digest == plan.digest


@given(st.integers(1, 60), st.floats(0.6, 6), st.integers(70, 4000), st.integers(0, 1_000_000_000))
def test_prompts_come_out_at_the_wanted_length(
    template: int, rate: float, wanted: int, jitter: int
) -> None:
    asked: list[int] = []

    def count(words: int) -> int:
        asked.append(words)
        return template + round(words * rate + (words * jitter) % 3)

    words, tokens = words_for(wanted, count)
    assert tokens == template + round(words * rate + (words * jitter) % 3)
    assert abs(tokens - wanted) <= rate + 4
    assert len(asked) <= 6


METRICS = """# HELP vllm:prefix_cache_hits_total hits
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="a b"} 12.0
vllm:prefix_cache_hits_total{engine="1",model_name="a b"} 3.0
vllm:prefix_cache_hits_total_created{engine="0"} 1.7e9
"""


def test_counters_are_summed_over_labels() -> None:
    assert counter(METRICS, "vllm:prefix_cache_hits_total") == 15.0
    assert counter(METRICS, "vllm:prefix_cache") is None
    assert hit_rate([0.0, 0.0], [100.0, 25.0]) == 0.25
    assert hit_rate([None, 0.0], [100.0, 25.0]) is None
    assert hit_rate([5.0, 5.0], [5.0, 5.0]) is None


@given(st.text())
def test_any_metrics_page_is_read_without_a_crash(page: str) -> None:
    assert counter(page, "a") is None or isinstance(counter(page, "a"), float)


def test_a_machine_without_its_files_is_described_by_what_is_left(tmp_path: Path) -> None:
    described = describe(tmp_path)
    assert (described["cpu"], described["memory_bytes"], described["product"]) == (None,) * 3
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal:  100 kB\n")
    described = describe(tmp_path)
    assert (described["cpu"], described["memory_bytes"]) == ("0xd0c", 102400)
