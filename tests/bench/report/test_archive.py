"""Runs as they are kept on this machine, page beside document."""

import json
from pathlib import Path
from typing import Any

import pytest

from report.archive import keep, last_before, place
from report.schema import NotARun, Run, dumps
from tests.bench.report.conftest import slower


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


def test_an_earlier_run_of_another_host_is_not_the_last(run: Run, tmp_path: Path) -> None:
    other = slower(run, 1, host="another", started="2000-01-01T00:00:00Z")
    (tmp_path / "other.json").write_text(dumps(other))
    assert last_before(tmp_path / "run.json", run) is None
    mine = slower(run, 1, started="2000-01-01T00:00:00Z")
    (tmp_path / "mine.json").write_text(dumps(mine))
    assert last_before(tmp_path / "run.json", run) == mine
