"""Axes: which values get a tick, and where a value lies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Below it powers of ten lose their digits, and no figure of ours is that small.
_SMALLEST = 1e-300


def nice_ticks(high: float, most: int = 5) -> list[float]:
    """Return round values from 0 past `high`, at most `most` + 1 of them."""
    if not _SMALLEST < high < math.inf:
        return [0.0, 1.0]
    rough = high / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough * (1 - 1e-9))
    count = math.ceil(high / step - 1e-9)
    return [step * i for i in range(count + 1)]


def label(value: float) -> str:
    """Return a tick's text: no more digits than it needs."""
    return f"{value:,.6g}" if abs(value) >= 1000 else f"{value:.4g}"


@dataclass(frozen=True)
class Axis:
    """A scale from `low`..`high` to `start`..`end` on the page; logarithmic by base 2 if asked."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        low, high = self._flat(self.low), self._flat(self.high)
        share = (self._flat(value) - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def _flat(self, value: float) -> float:
        return math.log2(value) if self.log else value


def from_zero(high: float, start: float, end: float) -> Axis:
    """Return a linear axis from 0 to a round value past `high`."""
    ticks = nice_ticks(high)
    return Axis(0.0, ticks[-1], start, end, tuple(ticks))


def through(values: Sequence[float], start: float, end: float) -> Axis:
    """Return a logarithmic axis with a tick at each of the values that were measured."""
    ticks = tuple(sorted(set(values))) or (1.0,)
    return Axis(ticks[0], ticks[-1], start, end, ticks, log=True)
