"""The plot of what changed since the last run: a row a figure, the change in percent."""

from collections.abc import Sequence
from html import escape

from report.axis import Axis, label, nice_ticks
from report.compare import Change
from report.svg import WIDTH

ROW, TOP, LEFT, RIGHT = 20, 62, 196, 464


def change_plot(changes: Sequence[Change]) -> str:
    """Return the changes as SVG; those that exceed the measured spread stand out."""
    height = TOP + ROW * len(changes) + 30
    axis = _percent_axis(changes)
    rows = "".join(_row(change, axis, TOP + ROW * (i + 0.5)) for i, change in enumerate(changes))
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Change since the last run" '
        f'xmlns="http://www.w3.org/2000/svg">{_head()}{_grid(axis, height - 30)}{rows}</svg>'
    )


def _percent(ratio: float) -> float:
    return (ratio - 1) * 100


def _percent_axis(changes: Sequence[Change]) -> Axis:
    far = max((abs(_percent(c.ratio)) for c in changes), default=1.0)
    positive = nice_ticks(max(far * 1.1, 1.0), most=2)
    ticks = tuple(sorted({-tick for tick in positive if tick} | set(positive)))
    return Axis(ticks[0], ticks[-1], LEFT, RIGHT, ticks)


def _head() -> str:
    return (
        '<text class="title" x="8" y="20">Change since the last run</text>'
        '<text class="unit" x="464" y="20" text-anchor="end">percent</text>'
        '<text class="label" x="8" y="44">Filled: beyond the measured spread.</text>'
    )


def _grid(axis: Axis, bottom: float) -> str:
    parts = []
    for tick in axis.ticks:
        x = axis.at(tick)
        kind = "level" if tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        sign = "+" if tick > 0 else ""
        place = f'x="{x:.1f}" y="{bottom + 20}" text-anchor="middle"'
        parts.append(f'<text class="label" {place}>{sign}{label(tick)}</text>')
    return "".join(parts)


def _row(change: Change, axis: Axis, y: float) -> str:
    def at(ratio: float) -> float:
        return axis.at(min(max(_percent(ratio), axis.low), axis.high))

    low, middle, high = at(change.ratio_low), at(change.ratio), at(change.ratio_high)
    kind = "real" if change.real else "same"
    words = f"{change.name}: {change.before.median:.4g} to {change.after.median:.4g}"
    return (
        f'<text class="label" x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">'
        f'{escape(change.name)}</text><g class="{kind}"><title>{escape(words)}</title>'
        f'<line class="whisker" x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}"/>'
        f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="5"/></g>'
    )
