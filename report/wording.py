"""Figures as a reader wants them: three significant digits, a unit, and how far they vary."""

from report.plots import per_second
from report.schema import Cell, Run, Spread

NONE = "–"  # noqa: RUF001 - a dash for what nothing measured


def number(value: float | None) -> str:
    """Return a value with as many digits as carry meaning."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def milliseconds(spread: Spread | None) -> str:
    return number(spread.median * 1e3) if spread else NONE


def rate(spread: Spread | None) -> str:
    found = per_second(spread)
    return number(found.median) if found else NONE


def varies(spread: Spread | None) -> str:
    """Return (max - min) / median in percent."""
    return f"{spread.spread:.1%}" if spread and spread.spread is not None else NONE


def headline(run: Run) -> list[tuple[str, str, str]]:
    """Return (figure, unit, what it is) of the few figures that a reader came for."""
    ladder = [c for c in run.cells if c.kind == "ladder" and c.state == "ok"]
    many = [c for c in run.cells if c.kind == "concurrency" and c.state == "ok"]
    found = []
    if ladder:
        cell = min(ladder, key=lambda c: (abs(c.context - 512), -c.output))
        shape = f"{cell.context} in, {cell.output} out"
        found.append((rate(cell.tpot_s), "tokens/s", f"one stream decodes, {shape}"))
        found.append((milliseconds(cell.ttft_s), "ms", f"to the first token, {shape}"))
    if many:
        best = max(many, key=lambda c: c.aggregate_tokens_per_s or 0)
        figure = number(best.aggregate_tokens_per_s)
        found.append((figure, "tokens/s", f"in all, {best.concurrency} at a time"))
    if run.bandwidth:
        found.append((number(run.bandwidth.read.median), "GB/s", _bandwidth_words(run)))
    return found


def _bandwidth_words(run: Run) -> str:
    peak = run.bandwidth.peak if run.bandwidth else None
    if not run.bandwidth or not peak:
        return "memory reads"
    return f"memory reads, {run.bandwidth.read.median / peak:.0%} of its peak"


def boot(run: Run) -> list[tuple[str, str]]:
    """Return what is known of the last boot, as (what, seconds)."""
    found = run.readiness or {}
    rows = [("start to healthy", "healthy_s"), ("start to the first answer", "first_chat_s")]
    return [(name, f"{found[key]:.1f} s") for name, key in rows if found.get(key) is not None]


def row(cell: Cell) -> list[str]:
    """Return a cell as the columns of a table; a cell that is not ok says why instead."""
    shape = [f"{cell.context:,}", str(cell.output), str(cell.concurrency)]
    if cell.state != "ok":
        return [*shape, NONE, NONE, NONE, NONE, f"{cell.state}: {cell.message}"]
    return [
        *shape,
        number(cell.aggregate_tokens_per_s),
        rate(cell.tpot_s),
        milliseconds(cell.ttft_s),
        varies(cell.batches_tokens_per_s),
        cell.message or "",
    ]


COLUMNS = (
    *("in", "out", "at a time", "tokens/s", "decode tokens/s", "first token, ms", "varies"),
    "remark",
)
