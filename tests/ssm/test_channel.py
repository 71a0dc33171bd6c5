import json
import random
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyinfra_ssm._channel import (
    DEFAULT_PAYLOAD_SIZE,
    PROBE_PATIENCE,
    REORDER_LIMIT,
    UNSENT_LIMIT,
    Channel,
)
from pyinfra_ssm._encryption import Cipher
from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._events import (
    ChannelClosed,
    ChannelOpened,
    DataKeyRequested,
    ErrorOutputReceived,
    ExitCodeReceived,
    FlagReceived,
    OutputReceived,
    ProbeAnswered,
    PublicationPaused,
    PublicationStarted,
)
from pyinfra_ssm._messages import AgentMessage, MessageType, PayloadType
from pyinfra_ssm._payloads import (
    Acknowledgement,
    Action,
    EncryptionChallenge,
    HandshakeComplete,
    HandshakeRequest,
    HandshakeResponse,
)
from pyinfra_ssm._retransmission import FIRST_TIMEOUT, LONGEST_TIMEOUT, MOST_FRAMES
from pyinfra_ssm._states import TRANSITIONS, State, Step
from tests.ssm.agent_end import AgentEnd, from_service, output
from tests.ssm.vectors import recorded

CLIENT = UUID(int=7)


def new_channel() -> Channel:
    channel = Channel(CLIENT, uuid4)
    channel.connected("TOKEN", now=0.0)
    channel.data_to_send()
    return channel


def running_channel() -> Channel:
    channel = new_channel()
    channel.receive(output(0, b"# ").encode(), now=0.0)
    channel.data_to_send()
    return channel


def frames(channel: Channel) -> list[AgentMessage]:
    return [AgentMessage.decode(raw) for raw in channel.data_to_send() if isinstance(raw, bytes)]


def sent_input(channel: Channel) -> list[AgentMessage]:
    return [frame for frame in frames(channel) if frame.message_type == MessageType.INPUT]


def acknowledge(channel: Channel, frame: AgentMessage, now: float) -> list[object]:
    return [*channel.receive(Acknowledgement.of(frame).frame(uuid4(), 0).encode(), now)]


# Opening


def test_the_first_frame_is_the_token_as_text() -> None:
    channel = Channel(CLIENT, lambda: UUID(int=1))
    channel.connected("TOKEN", now=0.0)
    (text,) = channel.data_to_send()
    assert json.loads(text) == {
        "MessageSchemaVersion": "1.0",
        "RequestId": str(UUID(int=1)),
        "TokenValue": "TOKEN",
        "ClientId": str(CLIENT),
        "ClientVersion": "1.2.677.0",
    }


@pytest.mark.parametrize(
    "name",
    [
        "01_shell_plugin",
        "02_interactive_framed",
        "03_noninteractive_separate",
        "04_noninteractive_handshake_plugin",
        "05_port_echo",
        "07_resume",
        "12_noninteractive_interrupt",
    ],
)
def test_what_the_real_agent_sent_is_understood_from_first_to_last_frame(name: str) -> None:
    channel = new_channel()
    events = []
    for frame in recorded(name):
        if frame.channel == "data" and frame.sender != "client" and frame.kind == "binary":
            events += channel.receive(frame.raw, now=frame.ms / 1000)
    assert isinstance(events[0], ChannelOpened)
    assert events[-1] == ChannelClosed("")
    assert channel.state is State.CLOSED


def test_recorded_output_that_came_out_of_order_after_a_resume_is_put_in_order() -> None:
    channel = new_channel()
    lines = b""
    for frame in recorded("07_resume"):
        if frame.channel == "data" and frame.sender != "client" and frame.kind == "binary":
            events = channel.receive(frame.raw, now=0.0)
            lines += b"".join(e.data for e in events if isinstance(e, OutputReceived))
    wanted = "".join(f"line{i}\n" for i in range(1, 25))
    assert lines.decode() == f"# READY\n{wanted}END1\n"


def test_our_handshake_response_is_byte_for_byte_that_of_the_reference_plugin() -> None:
    theirs = recorded("04_noninteractive_handshake_plugin")
    channel = new_channel()
    (request,) = (f for f in theirs if f.kind == "binary" and f.fields["payload_type"] == 5)
    channel.receive(request.raw, now=0.0)
    (ours,) = sent_input(channel)
    (response,) = (f for f in theirs if f.kind == "binary" and f.fields["payload_type"] == 6)
    assert ours.payload == AgentMessage.decode(response.raw).payload
    assert (ours.sequence, ours.flags, ours.payload_type) == (0, 0, 6)


def test_separate_streams_and_the_exit_code_are_told_apart() -> None:
    channel = new_channel()
    events = []
    for frame in recorded("03_noninteractive_separate"):
        if frame.channel == "data" and frame.sender == "agent" and frame.kind == "binary":
            events += channel.receive(frame.raw, now=0.0)
    assert events == [
        ChannelOpened(),
        OutputReceived(b"to-stdout\n"),
        ErrorOutputReceived(b"to-stderr\n"),
        ExitCodeReceived(3),
    ]


def test_input_waits_for_the_end_of_the_handshake() -> None:
    channel = new_channel()
    channel.send(b"early", now=0.0)
    assert sent_input(channel) == []
    request = HandshakeRequest("3.3.0.0", (Action("SessionType", {"SessionType": "Port"}),))
    channel.receive(output(0, request.encode(), PayloadType.HANDSHAKE_REQUEST).encode(), 0.0)
    assert [f.payload_type for f in sent_input(channel)] == [PayloadType.HANDSHAKE_RESPONSE]

    done = HandshakeComplete(1, "for authorised use").encode()
    events = channel.receive(output(1, done, PayloadType.HANDSHAKE_COMPLETE).encode(), 0.0)

    assert events == [ChannelOpened("for authorised use")]
    assert [(f.sequence, f.payload) for f in sent_input(channel)] == [(1, b"early")]


def test_an_action_that_nobody_knows_is_answered_as_unsupported() -> None:
    channel = new_channel()
    request = HandshakeRequest("3.3.0.0", (Action("Telepathy", {}),))
    channel.receive(output(0, request.encode(), PayloadType.HANDSHAKE_REQUEST).encode(), 0.0)
    (response,) = sent_input(channel)
    (action,) = HandshakeResponse.decode(response.payload).actions
    assert (action.status, action.error) == (3, "Unsupported action Telepathy")


# Encryption

KEY = bytes(range(64))


def encrypting_channel() -> Channel:
    channel = new_channel()
    actions = (
        Action("SessionType", {"SessionType": "Standard_Stream"}),
        Action("KMSEncryption", {"KMSKeyId": "alias/sessions"}),
    )
    request = HandshakeRequest("3.3.0.0", actions).encode()
    events = channel.receive(output(0, request, PayloadType.HANDSHAKE_REQUEST).encode(), 0.0)
    assert events == [DataKeyRequested("alias/sessions")]
    return channel


def test_an_encrypted_session_proves_its_key_and_seals_both_directions() -> None:
    channel, agent = encrypting_channel(), Cipher.of_agent(KEY)
    channel.provide_data_key(KEY, b"wrapped", now=0.0)
    (response,) = sent_input(channel)
    results = [action.result for action in HandshakeResponse.decode(response.payload).actions]
    assert results == [None, {"KMSCipherTextKey": "d3JhcHBlZA=="}]

    challenge = EncryptionChallenge(agent.encrypt(b"prove it")).encode()
    kind = PayloadType.ENCRYPTION_CHALLENGE_REQUEST
    channel.receive(output(1, challenge, kind).encode(), 0.0)
    (proof,) = sent_input(channel)
    assert proof.payload_type == PayloadType.ENCRYPTION_CHALLENGE_RESPONSE
    assert agent.decrypt(EncryptionChallenge.decode(proof.payload).challenge) == b"prove it"

    done = HandshakeComplete().encode()
    channel.receive(output(2, done, PayloadType.HANDSHAKE_COMPLETE).encode(), 0.0)
    sealed = agent.encrypt(b"secret output")
    assert channel.receive(output(3, sealed).encode(), 0.0) == [OutputReceived(b"secret output")]
    channel.send(b"secret input", now=0.0)
    (frame,) = sent_input(channel)
    assert agent.decrypt(frame.payload) == b"secret input"


def test_a_key_that_kms_refuses_is_reported_to_the_agent() -> None:
    channel = encrypting_channel()
    channel.refuse_data_key("AccessDenied", now=0.0)
    (frame,) = sent_input(channel)
    response = HandshakeResponse.decode(frame.payload)
    assert [action.status for action in response.actions] == [1, 2]
    assert response.errors == ("AccessDenied",)


def test_output_that_is_not_sealed_with_the_session_key_is_a_protocol_error() -> None:
    channel = encrypting_channel()
    channel.provide_data_key(KEY, b"wrapped", now=0.0)
    done = HandshakeComplete().encode()
    channel.receive(output(1, done, PayloadType.HANDSHAKE_COMPLETE).encode(), 0.0)
    with pytest.raises(ProtocolError, match="not encrypted with this session's key"):
        channel.receive(output(2, b"in the clear").encode(), 0.0)


# States


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("step", Step)
def test_a_step_outside_the_table_is_a_protocol_error(state: Any, step: Any) -> None:
    if (state, step) in TRANSITIONS:
        assert state.after(step) is TRANSITIONS[state, step]
    else:
        with pytest.raises(ProtocolError):
            state.after(step)


@pytest.mark.parametrize("kind", [5, 7, 8])
def test_a_handshake_in_the_middle_of_a_session_is_a_protocol_error(kind: int) -> None:
    with pytest.raises(ProtocolError, match="while running"):
        running_channel().receive(output(1, b"{}", kind).encode(), 0.0)


def test_output_during_the_handshake_is_a_protocol_error() -> None:
    channel = new_channel()
    request = HandshakeRequest("3.3.0.0", ()).encode()
    channel.receive(output(0, request, PayloadType.HANDSHAKE_REQUEST).encode(), 0.0)
    with pytest.raises(ProtocolError, match="data while handshaking"):
        channel.receive(output(1, b"$ ").encode(), 0.0)


def test_a_wrong_digest_is_a_protocol_error() -> None:
    raw = bytearray(output(1, b"good").encode())
    raw[-1] ^= 1
    with pytest.raises(ProtocolError, match="wrong digest"):
        running_channel().receive(bytes(raw), 0.0)


def test_closing_twice_and_late_output_are_taken_calmly() -> None:
    channel = running_channel()
    closing = from_service(MessageType.CHANNEL_CLOSED, b'{"SessionId":"s","Output":"timed out"}')
    assert channel.receive(closing, 0.0) == [ChannelClosed("timed out")]
    assert channel.receive(closing, 0.0) == []
    assert channel.receive(output(1, b"late").encode(), 0.0) == []
    assert channel.deadline() is None


def test_a_frame_type_of_a_later_service_is_passed_over() -> None:
    assert running_channel().receive(from_service("news"), 0.0) == []


def test_a_flag_is_reported() -> None:
    events = running_channel().receive(output(1, b"\0\0\0\2", PayloadType.FLAG).encode(), 0.0)
    assert events == [FlagReceived(2)]


# Acknowledgement and order


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


# Sending again


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


# Pause, resume, probe


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


# Both ends, and a link that loses, repeats and reorders


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


@given(st.lists(st.integers(0, 6), max_size=40))
def test_output_is_in_order_and_unrepeated_whatever_arrives(arrivals: list[int]) -> None:
    channel = new_channel()
    events = [e for s in arrivals for e in channel.receive(output(s, b"%d" % s).encode(), 0.0)]
    data = [e.data for e in events if isinstance(e, OutputReceived)]
    assert data == [b"%d" % i for i in range(len(data))]


stream_frames = st.builds(
    output, st.integers(-3, 8), st.binary(max_size=40), st.integers(0, 13)
).map(AgentMessage.encode)
service_frames = st.builds(
    from_service, st.sampled_from(MessageType), st.binary(max_size=40) | st.just(b"{}")
)


@given(st.lists(stream_frames | service_frames | st.binary(max_size=130), max_size=30))
def test_any_frames_give_events_or_a_protocol_error(raws: list[bytes]) -> None:
    channel = new_channel()
    for raw in raws:
        try:
            channel.receive(raw, now=0.0)
        except ProtocolError:
            return
        except ValueError as error:  # an owner that answers a key request with no cipher
            raise AssertionError("a peer's frame raised what only the owner may cause") from error
