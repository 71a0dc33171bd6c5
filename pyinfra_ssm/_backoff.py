"""Pauses between attempts, longer each time; pure."""

from collections.abc import Callable

FIRST, LONGEST = 0.05, 5.0  # seconds


class Backoff:
    """Attempts count from the last one that bore fruit."""

    def __init__(self, chance: Callable[[], float]) -> None:
        """`chance` gives a number from 0 to 1, for half of each pause."""
        self._chance = chance
        self._next = 0.0

    def reset(self) -> None:
        """Note that an attempt bore fruit."""
        self._next = 0.0

    def pause(self) -> float:
        """Return how many seconds to wait for the next attempt; none for the first."""
        pause = self._next
        self._next = min(max(2 * pause, FIRST), LONGEST)
        return pause * (0.5 + self._chance() / 2)
