"""The kernels that use the memory, timed by the device and checked."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..figures import spread  # noqa: TID252  # on the host `bench` has no parent
from .buffers import PERIOD


@dataclass(frozen=True)
class Kernel:
    """One way to use the memory: `run(i)` starts the i-th call, `wrong()` judges all of them."""

    name: str
    crossings: int  # how often the buffer crosses the bus in one call
    run: Callable[[int], Any]
    wrong: Callable[[], str | None]


def figure(bytes_moved: int, seconds: Iterable[float], wrong: str | None) -> dict[str, Any]:
    """Return GB/s of moving `bytes_moved` in each of `seconds`, and what came out wrong."""
    return {**(spread(bytes_moved / taken / 1e9 for taken in seconds) or {}), "wrong": wrong}


def reduction_wrong(values: Iterable[Any], wanted: float) -> str | None:
    """Say which float32 reductions are off; the order of summation may move the last bits."""
    bad = [value for value in map(float, values) if not abs(value - wanted) <= 1e-4 * wanted]
    return f"{len(bad)} reductions differ from {wanted}: {bad[0]}" if bad else None


class Buffers:
    """Two buffers on a device, the kernels over them, and the clock that fits the device."""

    def __init__(self, torch: Any, device: Any, size: int) -> None:
        self.torch, self.device, self.size = torch, device, size
        self.count = size // 4
        self.pattern = torch.arange(PERIOD, dtype=torch.float32, device=device) / PERIOD
        self.source = self.pattern.repeat(self.count // PERIOD)
        self.target = torch.zeros_like(self.source)
        self.sums: list[Any] = []
        self.dots: list[Any] = []
        self.calls = 0  # of the kernel that is measured

    def kernels(self) -> list[Kernel]:
        """Return the kernels in the order to run them: `read_dot` wants the copy done.

        No dot product on a CPU: its BLAS adds in so few float32 lanes that the sum drifts by 0.1 %.
        """
        source, target, dot = self.source, self.target, self.torch.dot
        every = [
            Kernel("copy", 2, lambda i: target.copy_(source), lambda: self._unlike(target, 1)),
            Kernel("read_sum", 1, lambda i: self.sums.append(source.sum()), self._sums_wrong),
            Kernel(
                "read_dot", 2, lambda i: self.dots.append(dot(source, target)), self._dots_wrong
            ),
            Kernel("write", 1, lambda i: target.fill_(i + 1), self._fill_wrong),
            Kernel(
                "scale",
                2,
                lambda i: source.mul_((0.5, 2.0)[i % 2]),
                lambda: self._unlike(source, 0.5),
            ),
        ]
        return [k for k in every if k.name != "read_dot" or self.device.type == "cuda"]

    def seconds(self, call: Callable[[], Any]) -> float:
        """Return how long the device took for what `call` starts."""
        if self.device.type != "cuda":
            begin = time.perf_counter_ns()
            call()
            return (time.perf_counter_ns() - begin) / 1e9
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        call()
        events[1].record()
        events[1].synchronize()
        return float(events[0].elapsed_time(events[1])) / 1e3

    def measure(self, kernel: Kernel, warmup: int, runs: int) -> dict[str, Any]:
        """Return the figure of a kernel, in GB/s of `runs` runs after at least `warmup`."""
        # An odd number of calls, so that `scale` does not end where it began.
        warmup += 1 - (warmup + runs) % 2
        self.calls = warmup + runs
        taken = [self.seconds(lambda i=i: kernel.run(i)) for i in range(self.calls)]  # type: ignore[misc]
        return figure(kernel.crossings * self.size, taken[warmup:], kernel.wrong())

    def plain_copy(self, calls: int = 10) -> float:
        """Return GB/s of `calls` plain `copy_` in one interval."""
        taken = self.seconds(lambda: [self.target.copy_(self.source) for _ in range(calls)])
        return 2 * self.size * calls / taken / 1e9

    def _sums_wrong(self) -> str | None:
        return reduction_wrong(self.sums, self.count * (PERIOD - 1) / 2 / PERIOD)

    def _dots_wrong(self) -> str | None:
        squares = (PERIOD - 1) * (2 * PERIOD - 1) / 6 / PERIOD  # a pattern's, over its length
        return reduction_wrong(self.dots, self.count * squares / PERIOD)

    def _unlike(self, buffer: Any, factor: float) -> str | None:
        rows = buffer.view(-1, PERIOD)
        equal = self.torch.equal(rows, (self.pattern * factor).expand_as(rows))
        return None if equal else f"the buffer does not hold {factor:g} times the pattern"

    def _fill_wrong(self) -> str | None:
        low, high = float(self.target.min()), float(self.target.max())
        right = low == high == self.calls
        return None if right else f"filled with {self.calls}, holds {low} to {high}"
