"""A clock for waiting that no test waits for."""

from collections.abc import Callable
from dataclasses import dataclass, field

from operations.ec2_wait import Clock


@dataclass
class Hand:
    """A clock that moves only when somebody sleeps; `at` says what happens when."""

    time: float = 0.0
    at: dict[float, Callable[[], None]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.time, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.time += seconds
        for due in [when for when in self.at if when <= self.time]:
            self.at.pop(due)()
