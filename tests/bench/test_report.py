"""Runs as documents, pages, tables and side by side."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.bench.figures import spread
from files.bench.harness import Harness
from files.bench.plan import Method, Plan
from report.__main__ import main
from report.archive import keep, last_before, place
from report.assemble import run_of
from report.axis import Axis, from_zero, nice_ticks, through
from report.change_plot import change_plot
from report.compare import Change, NotComparable, changes, check_methods
from report.markdown import side_by_side, table
from report.page import page
from report.plots import knee_of, plots
from report.schema import NotARun, Run, Spread, dumps, json_schema, parse, parse_measurement
from report.svg import Point
from report.wording import number
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


def test_a_measurement_becomes_a_document_that_survives_its_journey(run: Run) -> None:
    assert parse(dumps(run), "it") == run
    assert (run.host, run.model, run.runtime) == ("@ssm/i-0123456789abcdef0", "gemma-4", "vllm")
    assert [cell.state for cell in run.cells] == ["ok", "ok", "infeasible", "ok", "ok"]


def test_the_ceiling_is_measured_bandwidth_over_streamed_bytes(run: Run) -> None:
    assert run.ceiling is not None
    assert run.ceiling.tokens_per_s == pytest.approx(277.0e9 / 4.514e9)
    assert run.evidence["ceiling"] == "measured read bandwidth over streamed bytes (source)"


def test_without_a_smoke_record_there_is_no_bandwidth_and_no_ceiling(
    measurement: dict[str, Any],
) -> None:
    run = assembled(measurement | {"attached": {}})
    assert (run.bandwidth, run.ceiling, run.smoke) == (None, None, None)
    assert "nothing was measured" in page(run)


def test_notes_say_whether_a_prefix_cache_could_help(measurement: dict[str, Any]) -> None:
    assert assembled(measurement).notes[0].startswith("Every prompt began with a nonce")
    measurement["method"]["nonce"] = False
    measurement["cells"][0]["prefix_hit_rate"] = 0.947
    notes = assembled(measurement).notes
    assert notes[0].startswith("Prompts were repeated")
    assert "94.7%" in notes[1]


SPOILED = {
    "another schema": ({"schema": "vllm-g5g/measurement/2"}, "schema"),
    "no cells": ({"cells": None}, "cells"),
    "no server": ({"server": {}}, "model"),
    "a smoke record without figures": (
        {"attached": {"smoke": {"bandwidth": {"figures": {"read": {}}}}}},
        "a record that cannot be read",
    ),
    "an id that is a path": ({"id": "../../etc/passwd"}, "id"),
}


@pytest.mark.parametrize(("change", "message"), SPOILED.values(), ids=SPOILED)
def test_a_measurement_that_is_none_is_refused(
    measurement: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(NotARun, match=message):
        assembled(measurement | change)


def test_a_document_with_a_hole_names_the_field(run: Run) -> None:
    document = json.loads(dumps(run))
    del document["cells"][0]["tokens"]
    document["cells"][1]["colour"] = "red"
    with pytest.raises(NotARun, match=r"runs/a\.json is no run.*cells\.0\.tokens.*colour"):
        parse(json.dumps(document), "runs/a.json")


@given(st.text())
def test_any_text_is_a_run_or_not_a_run(text: str) -> None:
    with pytest.raises(NotARun):
        parse(text, "it")


def test_a_run_is_kept_with_its_page_and_held_against_the_last(
    measurement: dict[str, Any], tmp_path: Path
) -> None:
    kept = keep(tmp_path / "reports", "@ssm/i-01", json.dumps(measurement))
    assert kept.name == f"ssm_i-01-{measurement['id']}.json"
    assert "Change since the last run" not in kept.with_suffix(".html").read_text()

    later = measurement | {"id": "later", "started": "2999-01-01T00:00:00Z"}
    (kept.parent / "notes.json").write_text("{}")  # of someone else
    second = keep(kept.parent, "@ssm/i-01", json.dumps(later))

    assert "Change since the last run" in second.with_suffix(".html").read_text()
    other = measurement | {"id": "other", "method": {**measurement["method"], "repeats": 5}}
    third = keep(kept.parent, "@ssm/i-01", json.dumps(other | {"started": "2999-01-02T00:00:00Z"}))
    assert "Change since the last run" not in third.with_suffix(".html").read_text()


def test_a_bad_measurement_leaves_nothing(tmp_path: Path) -> None:
    for text in ("{", "{}", "[]"):
        with pytest.raises(NotARun):
            keep(tmp_path / "reports", "host", text)
    assert not (tmp_path / "reports").exists()


def test_host_names_cannot_leave_the_directory(tmp_path: Path) -> None:
    assert place(tmp_path, "@ssm/../../x", "id").parent == tmp_path


def test_the_page_asks_nobody_and_runs_nothing(run: Run) -> None:
    text = page(run)
    assert not re.search(r"<script|<link|@import|url\(|src=", text)
    assert "https://" not in text
    assert text.count("<svg") == 4
    # What the server said is shown, and is no markup.
    assert "maximum context length is 600 &lt;tokens&gt;" in text


def test_plots_are_well_formed(run: Run) -> None:
    drawn = [*plots(run), change_plot(changes(run, slower(run, 1.5)))]
    for text in drawn:
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_a_plot_stays_inside_its_frame(run: Run) -> None:
    for text in plots(run):
        for element in ElementTree.fromstring(text).iter():
            for key in ("x", "x1", "x2", "cx"):
                assert 0 <= float(element.get(key, 1)) <= 480
            for key in ("y", "y1", "y2", "cy"):
                assert 0 <= float(element.get(key, 1)) <= 320


def test_only_what_exceeds_the_spread_is_called_a_difference(run: Run) -> None:
    before = Spread(median=10, min=9, max=11, mean=10, stdev=1, spread=0.2, n=3)
    near = before.model_copy(update={"median": 11.5, "min": 10.9, "max": 12.0})
    far = before.model_copy(update={"median": 11.5, "min": 11.1, "max": 12.0})
    assert not Change("x", before, near).real
    assert Change("x", before, far).real
    assert not any(change.real for change in changes(run, run))
    assert all(
        change.real for change in changes(run, slower(run, 3)) if "memory" not in change.name
    )


def test_runs_side_by_side_star_real_differences(run: Run) -> None:
    text = side_by_side([run, slower(run, 3, id="slow")], None)
    row = next(line for line in text.splitlines() if "64 in, 4 out: s a token" in line)
    assert row.endswith("(+200.0%) \\* |")
    assert "\\* differs" in side_by_side([run, run], None)


def test_different_methods_are_not_compared_silently(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method = json.loads(dumps(run))["method"] | {"nonce": False}
    other = slower(run, 1, id="other", method=method)
    with pytest.raises(NotComparable, match="other has nonce False"):
        check_methods([run, other])
    paths = []
    for found in (run, other):
        path = tmp_path / f"{found.id}.json"
        path.write_text(dumps(found))
        paths.append(str(path))
    assert main(["compare", *paths]) == 1
    assert "nonce False" in capsys.readouterr().err
    assert main(["compare", "--anyway", *paths]) == 0
    assert capsys.readouterr().out.startswith("**measured in different ways: other has nonce")


def test_the_command_line_writes_pages_and_tables(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(dumps(run))
    assert main(["page", str(path)]) == 0
    assert path.with_suffix(".html").exists()
    assert main(["table", str(path)]) == 0
    assert "| 64 | 4 | 1 |" in capsys.readouterr().out
    assert main(["table", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err


def test_the_table_says_what_was_infeasible_in_one_line(run: Run) -> None:
    line = next(line for line in table(run).splitlines() if line.startswith("| 900"))
    assert "infeasible: HTTP 400 for model gemma-4: maximum context length" in line
    assert line.count("|") == 9


def test_an_earlier_run_of_another_host_is_not_the_last(run: Run, tmp_path: Path) -> None:
    other = slower(run, 1, host="another", started="2000-01-01T00:00:00Z")
    (tmp_path / "other.json").write_text(dumps(other))
    assert last_before(tmp_path / "run.json", run) is None
    mine = slower(run, 1, started="2000-01-01T00:00:00Z")
    (tmp_path / "mine.json").write_text(dumps(mine))
    assert last_before(tmp_path / "run.json", run) == mine


KNEES = {
    "saturated at 8": ([(1, 28.65), (4, 97.48), (8, 168.33), (16, 169.96), (32, 170.99)], 8),
    "still rising": ([(1, 10), (2, 20), (4, 40)], 4),
    "flat": ([(1, 10), (2, 10.1)], 1),
    "one point": ([(1, 10)], None),
}


@pytest.mark.parametrize(("rates", "knee"), KNEES.values(), ids=KNEES)
def test_the_knee(rates: list[tuple[float, float]], knee: float | None) -> None:
    found = knee_of([Point(x, y, y, y) for x, y in rates])
    assert (found.x if found else None) == knee


@given(st.floats(1e-9, 1e12))
def test_ticks_start_at_zero_and_pass_the_highest(high: float) -> None:
    ticks = nice_ticks(high)
    assert ticks[0] == 0
    assert ticks[-1] >= high * (1 - 1e-6)
    assert 2 <= len(ticks) <= 7


@given(st.lists(st.integers(1, 100_000), min_size=1), st.floats(0, 1e6))
def test_an_axis_keeps_order_and_bounds(values: list[int], high: float) -> None:
    axis = through(values, 0, 100)
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in places)
    assert from_zero(high, 100, 0).at(0) == 100
    assert isinstance(axis, Axis)


def test_numbers_keep_the_digits_that_mean_something() -> None:
    shown = [number(value) for value in (4466.3, 42.94, 9.02, 0.0233, 0, None)]
    assert shown == ["4,466", "42.9", "9.02", "0.023", "0", "–"]  # noqa: RUF001


def test_the_schema_in_the_docs_is_current() -> None:
    kept = Path(__file__).resolve().parents[2] / "docs" / "run-1.schema.json"
    assert kept.read_text() == json_schema() + "\n", "run: python -m report schema > " + str(kept)


def test_the_method_of_the_schema_is_the_harnesss_own() -> None:
    assert set(asdict(replace(METHOD))) == set(Run.model_fields["method"].annotation.model_fields)  # type: ignore[union-attr]
