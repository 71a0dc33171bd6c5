"""What a peer may send and when; what it must not is a ProtocolError and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._events import ChannelClosed, FlagReceived
from pyinfra_ssm._messages import AgentMessage, MessageType, PayloadType
from pyinfra_ssm._payloads import HandshakeRequest
from pyinfra_ssm._states import TRANSITIONS, State, Step
from tests.ssm.agent_end import from_service, output
from tests.ssm.channels import new_channel, running_channel


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
