"""Pauses, new sockets, and the probe for a larger frame size."""

import json
from typing import Any

import pytest

from pyinfra_ssm._channel import DEFAULT_PAYLOAD_SIZE, PROBE_PATIENCE
from pyinfra_ssm._events import ProbeAnswered, PublicationPaused, PublicationStarted
from pyinfra_ssm._messages import AgentMessage, MessageType
from tests.ssm.agent_end import from_service
from tests.ssm.channels import acknowledge, running_channel, sent_input


def test_nothing_is_sent_between_pause_and_start_publication() -> None:
    channel = running_channel()
    channel.send(b"before", now=0.0)
    before = sent_input(channel)
    pause = from_service(MessageType.PAUSE_PUBLICATION)
    assert channel.receive(pause, 0.1) == [PublicationPaused()]
    channel.send(b"meanwhile", now=0.2)
    assert channel.deadline() is None
    assert sent_input(channel) == []
    start = from_service(MessageType.START_PUBLICATION)
    assert channel.receive(start, 9.0) == [PublicationStarted()]
    channel.handle_deadline(now=9.0)
    assert {f.payload for f in sent_input(channel)} == {b"before", b"meanwhile"}
    assert before[0].sequence == 0


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
