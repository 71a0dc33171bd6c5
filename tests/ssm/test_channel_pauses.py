"""Pauses, new sockets, and the probe for a larger frame size."""

import json
from typing import Any
from uuid import uuid4

import pytest

from pyinfra_ssm._channel import DEFAULT_PAYLOAD_SIZE, PROBE_PATIENCE
from pyinfra_ssm._events import ProbeAnswered, PublicationPaused, PublicationStarted
from pyinfra_ssm._messages import AgentMessage, MessageType
from pyinfra_ssm._payloads import Acknowledgement
from tests.ssm.agent_end import from_service, output
from tests.ssm.channels import acknowledge, running_channel, sent_input

PAUSE = from_service(MessageType.PAUSE_PUBLICATION)
START = from_service(MessageType.START_PUBLICATION)


def test_between_pause_and_start_only_the_oldest_frame_is_repeated() -> None:
    channel = running_channel()
    channel.send(b"x" * 2 * DEFAULT_PAYLOAD_SIZE, now=0.0)
    oldest, newer = sent_input(channel)
    assert channel.receive(PAUSE, 0.1) == [PublicationPaused()]
    channel.send(b"meanwhile", now=0.2)
    assert sent_input(channel) == []
    for _ in range(3):
        due = channel.deadline()
        assert due is not None
        channel.handle_deadline(now=due)
        assert sent_input(channel) == [oldest]
    assert channel.receive(START, 9.0) == [PublicationStarted()]
    channel.handle_deadline(now=9.0)
    assert [f.sequence for f in sent_input(channel)] == [2, oldest.sequence, newer.sequence]


def test_a_pause_that_begins_on_a_quiet_channel_lets_one_frame_find_out_when_it_ends() -> None:
    channel = running_channel()
    channel.receive(PAUSE, 0.0)
    channel.send(b"x" * 3 * DEFAULT_PAYLOAD_SIZE, now=0.1)
    (first,) = sent_input(channel)
    acknowledge(channel, first, now=7.0)
    assert [f.sequence for f in sent_input(channel)] == [1, 2]


def test_whatever_comes_from_the_agent_ends_a_pause() -> None:
    for frame in (output(1, b"$ ").encode(), ACKNOWLEDGEMENT):
        channel = running_channel()
        channel.receive(PAUSE, 0.0)
        assert PublicationStarted() in channel.receive(frame, 7.0)
        assert not channel.window.is_paused


ACKNOWLEDGEMENT = Acknowledgement(MessageType.INPUT, uuid4(), 0).frame(uuid4(), 0).encode()


def test_a_new_socket_repeats_what_was_unacknowledged_under_its_old_number() -> None:
    channel = running_channel()
    channel.send(b"lost", now=0.0)
    (lost,) = sent_input(channel)
    channel.connected("SECOND", now=5.0)
    channel.handle_deadline(now=5.0)
    text, *rest = channel.data_to_send()
    assert json.loads(text)["TokenValue"] == "SECOND"
    assert [AgentMessage.decode(raw) for raw in rest if isinstance(raw, bytes)] == [lost]


def test_a_large_frame_that_is_acknowledged_sets_the_size_of_all_that_follow() -> None:
    channel = running_channel()
    channel.probe(b"L" * 4096, b"s", now=0.0)
    (frame,) = sent_input(channel)
    channel.send(b"x" * 5000, now=0.0)
    assert sent_input(channel) == []
    assert acknowledge(channel, frame, now=0.04) == [ProbeAnswered(True)]
    assert [len(f.payload) for f in sent_input(channel)] == [4096, 904]


@pytest.mark.parametrize("ending", ["time", "socket"])
def test_a_large_frame_that_is_lost_gives_its_number_to_a_small_one(ending: Any) -> None:
    channel = running_channel()
    channel.probe(b"L" * 4096, b"s", now=0.0)
    (large,) = sent_input(channel)
    if ending == "time":
        assert channel.handle_deadline(now=PROBE_PATIENCE) == [ProbeAnswered(False)]
    else:
        assert channel.connected("SECOND", now=0.5) == [ProbeAnswered(False)]
    small = sent_input(channel)[0]
    assert (small.sequence, small.payload) == (large.sequence, b"s")
    assert channel.payload_size == DEFAULT_PAYLOAD_SIZE


def test_a_probe_needs_a_quiet_channel() -> None:
    channel = running_channel()
    channel.send(b"busy", now=0.0)
    with pytest.raises(ValueError, match="quiet"):
        channel.probe(b"L", b"s", now=0.0)
