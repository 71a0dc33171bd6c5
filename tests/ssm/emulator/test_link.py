import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm.emulator import Faults
from pyinfra_ssm.emulator.link import Link, fate


def test_a_sound_line_delivers_one_copy_after_its_delay() -> None:
    assert fate(Faults(delay_ms=20), Random(0), impaired=True) == [0.02]


def test_a_lost_message_has_no_copy_and_a_repeated_one_two() -> None:
    assert fate(Faults(loss=1), Random(0), impaired=True) == []
    assert fate(Faults(duplication=1), Random(0), impaired=True) == [0, 0]
    # Lost once and repeated once: the copy arrives.
    assert fate(Faults(loss=1, duplication=1), Random(0), impaired=True) == [0]


def test_a_reordered_message_is_under_way_for_longer() -> None:
    faults = Faults(delay_ms=5, reordering=1, reordering_ms=30)
    assert fate(faults, Random(0), impaired=True) == [pytest.approx(0.035)]


def test_messages_of_the_service_itself_are_only_late() -> None:
    faults = Faults(delay_ms=5, loss=1, duplication=1, reordering=1)
    assert fate(faults, Random(0), impaired=False) == [0.005]


def test_about_the_wanted_share_is_lost() -> None:
    random = Random(1)
    lost = sum(not fate(Faults(loss=0.05), random, impaired=True) for _ in range(10_000))
    assert 400 < lost < 600


@given(st.lists(st.binary(min_size=1), max_size=50))
def test_a_sound_line_keeps_the_order(messages: list[bytes]) -> None:
    assert asyncio.run(_carry(messages, Faults())) == messages


def test_a_reordered_message_arrives_behind_later_ones() -> None:
    class FirstOnly(Random):
        """Hits the first message only."""

        draws = iter([1.0, 1.0, 0.0])

        def random(self) -> float:
            return next(self.draws, 1.0)

    faults = Faults(reordering=0.5, reordering_ms=10)
    carried = asyncio.run(_carry([b"a", b"b", b"c"], faults, FirstOnly()))
    assert carried == [b"b", b"c", b"a"]


async def _carry(
    messages: list[bytes], faults: Faults, random: Random | None = None
) -> list[bytes]:
    arrived: list[bytes] = []
    complete = asyncio.Event()

    async def deliver(raw: bytes) -> None:
        arrived.append(raw)
        if len(arrived) == len(messages):
            complete.set()

    link = Link(deliver, lambda: faults, random or Random(0))
    carrier = asyncio.create_task(link.run())
    for message in messages:
        link.push(message, impaired=True)
    if messages:
        await asyncio.wait_for(complete.wait(), 10)
    carrier.cancel()
    return arrived
