"""What is made of each cell: figures, refusals, failures, answers that end early."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from files.bench.harness import Harness
from tests.bench.fake_server import (
    DONE,
    Body,
    FakeServer,
    Refusal,
    delta,
    obedient,
    prompt_words,
    spoken,
)
from tests.bench.harnessed import SMALL, by_id, harness, plan_for, ticking


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
