"""A measured figure and what it has to be."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """`value` meets it when it is at most (or, for `least`, at least) `limit`, both in `unit`."""

    name: str
    value: float
    limit: float
    unit: str
    least: bool = False

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.least else self.value <= self.limit

    def line(self) -> str:
        sign = ">=" if self.least else "<="
        verdict = "ok" if self.is_met else "short"
        return (
            f"{self.name} {self.value:.3g}{self.unit} {sign}{self.limit:.3g}{self.unit} {verdict}"
        )


def verdict(targets: Iterable[Target]) -> int:
    """Return the exit code: 1 if any target is missed."""
    return 0 if all(target.is_met for target in targets) else 1


def elapsed(action: Callable[[], object]) -> float:
    """Return how many seconds the action takes."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun
