"""The plots of one run, and what they are made from."""

from collections.abc import Callable, Sequence

from report.schema import Cell, Run, Spread
from report.svg import Bar, Line, Plot, Point, Series, bars, lines

KNEE_SHARE = 0.95  # of the highest throughput: more streams than this only wait longer

Value = Callable[[Cell], Spread | None]


def plots(run: Run) -> list[str]:
    """Return the run's plots as SVG, in the order of the page."""
    return [decode(run), first_token(run), throughput(run), bandwidth(run)]


def per_second(spread: Spread | None) -> Spread | None:
    """Return seconds a token as tokens a second; the extremes change places."""
    if spread is None or not spread.min:
        return None
    return Spread(
        median=1 / spread.median,
        min=1 / spread.max,
        max=1 / spread.min,
        mean=1 / spread.mean,
        stdev=None,
        spread=spread.spread,
        n=spread.n,
    )


def decode(run: Run) -> str:
    ceiling = run.ceiling
    return lines(
        Plot(
            "Decode speed of one stream",
            "tokens in the prompt",
            "tokens/s",
            _by_output(run, lambda cell: per_second(cell.tpot_s)),
            Line(ceiling.tokens_per_s, f"memory allows {ceiling.tokens_per_s:.1f}")
            if ceiling
            else None,
        )
    )


def first_token(run: Run) -> str:
    series = _by_output(run, lambda cell: cell.ttft_s)
    return lines(Plot("Time to first token", "tokens in the prompt", "seconds", series))


def throughput(run: Run) -> str:
    points = tuple(
        _point(cell.concurrency, cell.batches_tokens_per_s)
        for cell in _ok(run, "concurrency")
        if cell.batches_tokens_per_s
    )
    knee = knee_of(points)
    shape = f"{run.method.concurrency_context} in, {run.method.concurrency_output} out"
    return lines(
        Plot(
            "Throughput of many streams",
            "requests at a time",
            "tokens/s",
            (Series(shape, points),) if points else (),
            mark=knee,
            mark_name=f"knee at {knee.x:.0f}" if knee else "",
        )
    )


def bandwidth(run: Run) -> str:
    found = run.bandwidth
    if found is None:
        return bars("Memory bandwidth", "", [], None)
    rows = [("read", found.read), ("copy", found.copied), ("write", found.write)]
    rows.append(("scale", found.scale))
    peak = Line(found.peak, f"peak {found.peak:,.1f}") if found.peak else None
    return bars("Memory bandwidth", "GB/s", [Bar(n, _point(0, s)) for n, s in rows], peak)


def knee_of(points: Sequence[Point]) -> Point | None:
    """Return the fewest streams that come within a twentieth of the highest throughput."""
    if len(points) < 2:
        return None
    enough = KNEE_SHARE * max(point.y for point in points)
    return min((point for point in points if point.y >= enough), key=lambda point: point.x)


def _by_output(run: Run, value: Value) -> tuple[Series, ...]:
    cells = _ok(run, "ladder")
    found = []
    for output in sorted({cell.output for cell in cells}):
        here = [cell for cell in cells if cell.output == output]
        points = [(cell.context, value(cell)) for cell in here]
        drawn = tuple(_point(x, spread) for x, spread in points if spread)
        if drawn:
            found.append(Series(f"{output} tokens out", drawn))
    return tuple(found)


def _ok(run: Run, kind: str) -> list[Cell]:
    return [cell for cell in run.cells if cell.kind == kind and cell.state == "ok"]


def _point(x: float, spread: Spread) -> Point:
    return Point(x, spread.median, spread.min, spread.max)
