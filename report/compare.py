"""Runs side by side: a difference counts only where the measured ranges do not touch."""

from collections.abc import Sequence
from dataclasses import dataclass

from report.schema import Cell, Run, Spread


class NotComparable(Exception):
    """The runs were measured in different ways; the message names each difference."""


@dataclass(frozen=True)
class Change:
    """One figure in two runs. `real`: the ranges of their repeats do not touch."""

    name: str
    before: Spread
    after: Spread

    @property
    def ratio(self) -> float:
        return self.after.median / self.before.median

    @property
    def ratio_low(self) -> float:
        return self.after.min / self.before.max

    @property
    def ratio_high(self) -> float:
        return self.after.max / self.before.min

    @property
    def real(self) -> bool:
        return self.after.min > self.before.max or self.after.max < self.before.min


def check_methods(runs: Sequence[Run]) -> None:
    """Raise NotComparable where a run was measured in another way than the first."""
    first = runs[0].method.model_dump()
    differences = [
        f"{run.id} has {name} {value!r}, {runs[0].id} has {first[name]!r}"
        for run in runs[1:]
        for name, value in run.method.model_dump().items()
        if value != first[name]
    ]
    if differences:
        raise NotComparable("measured in different ways: " + "; ".join(differences))


def figures(run: Run) -> dict[str, Spread]:
    """Return the figures that are compared, by name: only of cells that were measured whole."""
    found: dict[str, Spread | None] = {}
    for cell in run.cells:
        if cell.state == "ok":
            found |= _cell_figures(cell)
    if run.bandwidth:
        found["memory read, GB/s"] = run.bandwidth.read
    return {name: spread for name, spread in found.items() if spread and spread.min > 0}


def _cell_figures(cell: Cell) -> dict[str, Spread | None]:
    if cell.kind == "concurrency":
        shape = f"{cell.concurrency} at a time"
        return {f"{shape}: tokens/s": cell.batches_tokens_per_s}
    shape = f"{cell.context} in, {cell.output} out"
    return {f"{shape}: s a token": cell.tpot_s, f"{shape}: s to first": cell.ttft_s}


def changes(before: Run, after: Run) -> list[Change]:
    """Return every figure that both runs have."""
    old, new = figures(before), figures(after)
    return [Change(name, old[name], new[name]) for name in old if name in new]
