"""Runs as documents: what becomes of a measurement, what is none, what the schema says."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.page import page
from report.schema import NotARun, Run, dumps, json_schema, parse
from tests.bench.report.conftest import METHOD, assembled


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


def test_the_schema_in_the_docs_is_current() -> None:
    kept = Path(__file__).resolve().parents[3] / "docs" / "run-1.schema.json"
    assert kept.read_text() == json_schema() + "\n", "run: python -m report schema > " + str(kept)


def test_the_method_of_the_schema_is_the_harnesss_own() -> None:
    assert set(asdict(replace(METHOD))) == set(Run.model_fields["method"].annotation.model_fields)  # type: ignore[union-attr]
