"""Runs side by side, and the command line."""

import json
from pathlib import Path

import pytest

from report.__main__ import main
from report.compare import Change, NotComparable, changes, check_methods
from report.markdown import side_by_side
from report.schema import Run, Spread, dumps
from tests.bench.report.conftest import slower


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
