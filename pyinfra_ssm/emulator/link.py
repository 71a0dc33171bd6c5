"""One direction of one client socket: delays, loses, repeats and reorders messages."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count
from random import Random

from pyinfra_ssm.emulator.faults import Faults

# Messages under way before a sender has to wait: 64 MiB of the agent's frames, which is more than
# any round trip needs, and still a bound.
_MOST_UNDER_WAY = 65_536
# Timers of the event loop are up to 1 ms late; so much early, the error is even on average.
_EARLY = 0.0005


def fate(faults: Faults, random: Random, *, impaired: bool) -> list[float]:
    """Return after how many seconds each copy of a message arrives; none if it is lost.

    Messages that the service itself sends are not `impaired`: only late.
    """
    delay = faults.delay_ms / 1000
    if not impaired:
        return [delay]
    copies = 0 if random.random() < faults.loss else 1
    copies += random.random() < faults.duplication
    extra = faults.reordering_ms / 1000
    return [delay + extra * (random.random() < faults.reordering) for _ in range(copies)]


class Link:
    """Carries messages to `deliver`, in order but for those that the faults say to reorder."""

    def __init__(
        self,
        deliver: Callable[[bytes], Awaitable[None]],
        faults: Callable[[], Faults],
        random: Random,
    ) -> None:
        self._deliver = deliver
        self._faults = faults
        self._random = random
        self._under_way: list[tuple[float, int, bytes]] = []
        self._numbers = count()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def push(self, raw: bytes, *, impaired: bool) -> None:
        now = asyncio.get_running_loop().time()
        for delay in fate(self._faults(), self._random, impaired=impaired):
            number = next(self._numbers)
            heapq.heappush(self._under_way, (now + delay, number, raw))
            if self._under_way[0][1] == number:  # nobody sleeps for any but the earliest
                self._changed.set()
        if len(self._under_way) >= _MOST_UNDER_WAY:
            self._room.clear()

    async def room(self) -> None:
        """Wait until the line takes more."""
        await self._room.wait()

    async def run(self) -> None:
        """Deliver until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            if not self._under_way:
                await self._changed.wait()
                continue
            wait = self._under_way[0][0] - loop.time() - _EARLY
            if wait > 0:
                await self._sleep(wait)
                continue
            await self._deliver(heapq.heappop(self._under_way)[2])
            if len(self._under_way) < _MOST_UNDER_WAY:
                self._room.set()

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but wake for a message that is due sooner."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return
