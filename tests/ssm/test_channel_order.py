"""Acknowledgement, order and retransmission: when what is sent again, and when no more."""

from itertools import pairwise
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm._channel import DEFAULT_PAYLOAD_SIZE, UNSENT_LIMIT, Channel
from pyinfra_ssm._events import OutputReceived
from pyinfra_ssm._messages import AgentMessage, MessageType
from pyinfra_ssm._reordering import REORDER_LIMIT
from pyinfra_ssm._retransmission import FIRST_TIMEOUT, LONGEST_TIMEOUT, MOST_FRAMES
from tests.ssm.agent_end import output
from tests.ssm.channels import CLIENT, acknowledge, frames, new_channel, running_channel, sent_input
from tests.ssm.vectors import recorded


def test_a_repeated_frame_is_acknowledged_again_and_delivered_once() -> None:
    channel = running_channel()
    frame = output(1, b"once").encode()
    assert channel.receive(frame, 0.0) == [OutputReceived(b"once")]
    assert channel.receive(frame, 0.0) == []
    assert [f.message_type for f in frames(channel)] == [MessageType.ACKNOWLEDGE] * 2


def test_an_acknowledgement_is_as_the_reference_plugin_writes_it() -> None:
    theirs = recorded("01_shell_plugin")
    first_output, first_ack = (
        next(f for f in theirs if f.kind == "binary" and f.fields["message_type"] == kind)
        for kind in ("output_stream_data", "acknowledge")
    )
    channel = new_channel()
    channel.receive(first_output.raw, 0.0)
    (ours,) = frames(channel)
    wanted = AgentMessage.decode(first_ack.raw)
    assert (ours.payload, ours.flags, ours.sequence) == (wanted.payload, 3, 0)


def test_a_frame_too_far_ahead_is_not_acknowledged() -> None:
    channel = running_channel()
    assert channel.receive(output(1 + REORDER_LIMIT, b"far").encode(), 0.0) == []
    assert frames(channel) == []


@given(st.lists(st.integers(0, 6), max_size=40))
def test_output_is_in_order_and_unrepeated_whatever_arrives(arrivals: list[int]) -> None:
    channel = new_channel()
    events = [e for s in arrivals for e in channel.receive(output(s, b"%d" % s).encode(), 0.0)]
    data = [e.data for e in events if isinstance(e, OutputReceived)]
    assert data == [b"%d" % i for i in range(len(data))]


def test_all_that_is_due_is_sent_again_not_only_the_oldest() -> None:
    channel = running_channel()
    channel.send(b"x" * 3 * DEFAULT_PAYLOAD_SIZE, now=0.0)
    first = sent_input(channel)
    channel.handle_deadline(now=FIRST_TIMEOUT / 2)
    assert sent_input(channel) == []
    channel.handle_deadline(now=FIRST_TIMEOUT)
    assert sent_input(channel) == first


def test_what_is_acknowledged_has_no_deadline() -> None:
    channel = running_channel()
    channel.send(b"ls\n", now=0.0)
    (frame,) = sent_input(channel)
    assert channel.deadline() == FIRST_TIMEOUT
    acknowledge(channel, frame, now=0.04)
    assert channel.deadline() is None


def test_the_timeout_follows_the_round_trip_between_its_bounds() -> None:
    channel = running_channel()
    for round_trip, least, most in ((0.001, 0.1, 0.1), (0.4, 0.4, 1.0), (5.0, 1.0, 1.0)):
        for _ in range(20):
            channel.send(b"x", now=0.0)
            (frame,) = sent_input(channel)
            acknowledge(channel, frame, now=round_trip)
        assert least <= channel.window.round_trip.timeout <= most
    assert most == LONGEST_TIMEOUT


def test_a_frame_that_was_repeated_does_not_time_the_round_trip() -> None:
    channel = running_channel()
    channel.send(b"x", now=0.0)
    (frame,) = sent_input(channel)
    channel.handle_deadline(now=FIRST_TIMEOUT)
    acknowledge(channel, frame, now=0.21)
    assert channel.window.round_trip.timeout == FIRST_TIMEOUT


def test_a_later_loss_is_repeated_ever_more_slowly_but_at_least_each_second() -> None:
    channel = running_channel()
    channel.send(b"x", now=0.0)
    times = []
    for _ in range(6):
        due = channel.deadline()
        assert due is not None
        channel.handle_deadline(now=due)
        times.append(due)
    gaps = [round(b - a, 3) for a, b in pairwise(times)]
    assert gaps == [0.4, 0.8, 1.0, 1.0, 1.0]


def test_no_more_is_under_way_than_the_peer_keeps() -> None:
    channel = Channel(CLIENT, uuid4, payload_size=1)
    channel.connected("TOKEN", now=0.0)
    channel.receive(output(0, b"# ").encode(), now=0.0)
    channel.window.limit = 1 << 30
    channel.send(b"x" * (MOST_FRAMES + 10), now=0.0)
    sent = sent_input(channel)
    assert len(sent) == MOST_FRAMES
    acknowledge(channel, sent[1], now=0.0)
    assert sent_input(channel) == []  # the oldest is still missing over there
    acknowledge(channel, sent[0], now=0.0)
    assert len(sent_input(channel)) == 2


def test_input_beyond_the_limit_is_refused_rather_than_dropped() -> None:
    channel = new_channel()
    channel.send(b"x" * UNSENT_LIMIT, now=0.0)
    assert channel.room == 0
    with pytest.raises(ValueError, match="room for 0"):
        channel.send(b"y", now=0.0)
