"""Both ends, and a link that loses, repeats and reorders."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pyinfra_ssm._events import OutputReceived
from tests.ssm.agent_end import AgentEnd
from tests.ssm.channels import new_channel


class Link:
    """Frames on their way; each may be lost, doubled or overtaken, as `chance` says."""

    def __init__(self, chance: random.Random, trouble: float) -> None:
        self._chance, self._trouble = chance, trouble
        self._on_the_way: list[tuple[float, float, bytes]] = []

    def carry(self, frames: list[bytes], now: float) -> None:
        for raw in frames:
            copies = 2 if self._chance.random() < self._trouble else 1
            for _ in range(copies):
                if self._chance.random() >= self._trouble:
                    late = self._chance.random() * (0.1 if self._chance.random() < 0.2 else 0.001)
                    self._on_the_way.append((now + 0.02 + late, self._chance.random(), raw))

    def arrived(self, now: float) -> list[bytes]:
        here = sorted(each for each in self._on_the_way if each[0] <= now)
        self._on_the_way = [each for each in self._on_the_way if each[0] > now]
        return [raw for _, _, raw in here]

    def cut(self) -> None:
        self._on_the_way.clear()


def exchange(seed: int, trouble: float, up: bytes, down: list[bytes], cuts: set[int]) -> bytes:
    """Send both ways over a bad link until all is through; return what the client read."""
    chance, agent, channel = random.Random(seed), AgentEnd(), new_channel()
    there, back, now, read = Link(chance, trouble), Link(chance, trouble), 0.0, b""
    for part in down:
        agent.write(part)
    channel.send(up, now)
    for step in range(30_000):
        now += 0.01
        if step in cuts:
            there.cut()
            back.cut()
            channel.connected("AGAIN", now)
        channel.handle_deadline(now)
        agent.tick(now)
        there.carry([raw for raw in channel.data_to_send() if isinstance(raw, bytes)], now)
        back.carry(agent.data_to_send(), now)
        for raw in there.arrived(now):
            agent.receive(raw)
        for raw in back.arrived(now):
            events = channel.receive(raw, now)
            read += b"".join(e.data for e in events if isinstance(e, OutputReceived))
        if agent.input == up and read == b"".join(down) and channel.deadline() is None:
            return read
    raise AssertionError(f"stuck: {len(agent.input)} of {len(up)} up, {len(read)} down")


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    trouble=st.sampled_from([0.0, 0.05, 0.3]),
    up=st.binary(max_size=20_000),
    down=st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=30),
    cuts=st.sets(st.integers(1, 200), max_size=3),
)
def test_both_directions_arrive_whole_in_order_and_once(
    seed: int, trouble: float, up: Any, down: Any, cuts: Any
) -> None:
    assert exchange(seed, trouble, up, down, cuts) == b"".join(down)
