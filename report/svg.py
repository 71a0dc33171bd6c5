"""Plots as inline SVG, without a script: lines with whiskers, and bars.

Colours and fonts are the page's, by class, so that the dark page and the printed one fit. The view
is small, so that its text stays legible on a phone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from report.axis import Axis, from_zero, label, through

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 464, 58, 268  # of the plotting area
MARKERS = (
    '<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>',
    '<rect x="{l:.1f}" y="{t:.1f}" width="8" height="8"/>',
    '<path d="M{x:.1f} {t:.1f} l5 8 h-10 z"/>',
    '<path d="M{x:.1f} {t:.1f} l5 5 l-5 5 l-5 -5 z"/>',
)


@dataclass(frozen=True)
class Point:
    """A median with the extremes of its repeats."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Line:
    """A level across the plot, such as a ceiling."""

    y: float
    name: str


@dataclass(frozen=True)
class Plot:
    """Lines over a logarithmic x axis; `mark` draws the eye to one point and says why."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    level: Line | None = None
    mark: Point | None = None
    mark_name: str = ""


@dataclass(frozen=True)
class Bar:
    name: str
    point: Point


def lines(plot: Plot) -> str:
    """Return the plot as an <svg> element; one without points says so."""
    points = [point for series in plot.series for point in series.points]
    if not points:
        return _frame(plot.title, _text(WIDTH / 2, HEIGHT / 2, "nothing was measured", "middle"))
    highest = max(p.high for p in points)
    y = from_zero(max(highest, plot.level.y if plot.level else 0) * 1.02, BOTTOM, TOP)
    x = through([p.x for p in points], LEFT + 16, RIGHT - 16)
    return _frame(
        plot.title,
        _axes(x, y, plot.x_label, plot.y_label)
        + (_level(plot.level, y) if plot.level else "")
        + "".join(_series(series, x, y, number) for number, series in enumerate(plot.series))
        + _legend([series.name for series in plot.series])
        + (_mark(plot.mark, plot.mark_name, x, y) if plot.mark else ""),
    )


def bars(title: str, unit: str, rows: Sequence[Bar], peak: Line | None) -> str:
    """Return horizontal bars from 0, with whiskers and, where known, the peak to reach."""
    if not rows:
        return _frame(title, _text(WIDTH / 2, HEIGHT / 2, "nothing was measured", "middle"))
    highest = max([row.point.high for row in rows] + ([peak.y] if peak else []))
    x = from_zero(highest * 1.02, LEFT + 8, RIGHT)
    step = (BOTTOM - TOP) / len(rows)
    parts = [_bar(row, x, TOP + step * (i + 0.5)) for i, row in enumerate(rows)]
    grid = "".join(_vertical(x.at(tick), label(tick)) for tick in x.ticks)
    return _frame(title, grid + "".join(parts) + _peak(peak, x) + _x_label(unit))


def _frame(title: str, body: str) -> str:
    head = _text(8, 20, title, "start", "title")
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{head}{body}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str, kind: str = "label") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(text)}</text>'


def _segment(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _axes(x: Axis, y: Axis, x_label: str, y_label: str) -> str:
    rows = "".join(
        _segment("grid", LEFT, y.at(tick), RIGHT, y.at(tick))
        + _text(LEFT - 8, y.at(tick) + 5, label(tick), "end")
        for tick in y.ticks
    )
    columns = "".join(_text(x.at(tick), BOTTOM + 18, label(tick), "middle") for tick in x.ticks)
    return rows + columns + _x_label(x_label) + _text(RIGHT, 20, y_label, "end", "unit")


def _x_label(text: str) -> str:
    return _text((LEFT + RIGHT) / 2, HEIGHT - 10, text, "middle", "unit")


def _series(series: Series, x: Axis, y: Axis, number: int) -> str:
    places = [(x.at(p.x), y.at(p.y), p) for p in series.points]
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py, _ in places)
    drawn = "".join(
        _segment("whisker", px, y.at(p.low), px, y.at(p.high)) + _marker(px, py, number, p)
        for px, py, p in places
    )
    return f'<g class="s{number % len(MARKERS)}"><polyline points="{path}"/>{drawn}</g>'


def _marker(x: float, y: float, number: int, point: Point) -> str:
    """Return the point; its shape tells the series apart where colour does not."""
    shape = MARKERS[number % len(MARKERS)].format(x=x, y=y, l=x - 4, t=y - 4)
    words = f"{label(point.x)}: {point.y:.4g} ({point.low:.4g} to {point.high:.4g})"
    return f"<g>{shape}<title>{escape(words)}</title></g>"


def _legend(names: Sequence[str]) -> str:
    place, parts = float(LEFT), []
    for number, name in enumerate(names):
        shape = MARKERS[number % len(MARKERS)].format(x=place + 5, y=38, l=place + 1, t=34)
        parts.append(f'<g class="s{number % len(MARKERS)}">{shape}</g>')
        parts.append(_text(place + 15, 43, name, "start"))
        place += 15 + 7.6 * len(name) + 18
    return "".join(parts)


def _level(level: Line, y: Axis) -> str:
    at = y.at(level.y)
    return _segment("level", LEFT, at, RIGHT, at) + _text(RIGHT, at - 6, level.name, "end", "note")


def _mark(point: Point, name: str, x: Axis, y: Axis) -> str:
    px, py = x.at(point.x), y.at(point.y)
    # Above and to the left: a curve that rises to its knee leaves that corner free.
    anchor = "middle" if px < (LEFT + RIGHT) / 2 else "end"
    ring = f'<circle class="mark" cx="{px:.1f}" cy="{py:.1f}" r="9"/>'
    return ring + _text(px, max(py - 16, TOP + 4), name, anchor, "note")


def _bar(row: Bar, x: Axis, middle: float) -> str:
    p = row.point
    inside = x.at(p.y) - x.start
    body = (
        f'<rect class="bar" x="{x.start:.1f}" y="{middle - 13:.1f}" '
        f'width="{max(inside, 1):.1f}" height="26"/>'
    )
    whisker = _segment("whisker", x.at(p.low), middle + 9, x.at(p.high), middle + 9)
    name = _text(x.start - 6, middle + 5, row.name, "end")
    # Inside the bar, or after it where it is too short to hold the figure.
    place, kind = (x.start + 8, "value") if inside > 48 else (x.at(p.high) + 8, "label")
    value = _text(place, middle + 3, label(round(p.y, 1)), "start", kind)
    return f'<g class="s0">{body}{whisker}{name}{value}</g>'


def _vertical(x: float, text: str) -> str:
    return _segment("grid", x, TOP, x, BOTTOM) + _text(x, BOTTOM + 18, text, "middle")


def _peak(peak: Line | None, x: Axis) -> str:
    if peak is None:
        return ""
    at = x.at(peak.y)
    return _segment("level", at, TOP - 8, at, BOTTOM) + _text(
        at, TOP - 14, peak.name, "end", "note"
    )
