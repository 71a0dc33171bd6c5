"""Pages, tables and plots."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.axis import Axis, from_zero, nice_ticks, through
from report.change_plot import change_plot
from report.compare import changes
from report.markdown import table
from report.page import page
from report.plots import knee_of, plots
from report.schema import Run
from report.svg import Point
from report.wording import number
from tests.bench.report.conftest import slower
from tests.builds import STAMP


def test_the_page_asks_nobody_and_runs_nothing(run: Run) -> None:
    text = page(run)
    assert not re.search(r"<script|<link|@import|url\(|src=", text)
    assert "https://" not in text
    assert text.count("<svg") == 4
    # What the server said is shown, and is no markup.
    assert "maximum context length is 600 &lt;tokens&gt;" in text


def test_the_page_tells_both_halves_of_what_a_build_was_made_from(run: Run) -> None:
    stamped = run.model_copy(update={"software": {**run.software, "build": STAMP}})
    text = page(stamped)
    for name, value in (STAMP["inputs"]["compiled"] | STAMP["inputs"]["python"]).items():
        assert re.search(rf"build: {name}\W.*{re.escape(value)}", text, re.DOTALL)


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


def test_the_table_says_what_was_infeasible_in_one_line(run: Run) -> None:
    line = next(line for line in table(run).splitlines() if line.startswith("| 900"))
    assert "infeasible: HTTP 400 for model gemma-4: maximum context length" in line
    assert line.count("|") == 9


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
