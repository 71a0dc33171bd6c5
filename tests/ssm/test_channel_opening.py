"""From the token to a channel that delivers: handshake, recorded sessions, encryption."""

import json
from uuid import UUID

import pytest

from pyinfra_ssm._channel import Channel
from pyinfra_ssm._encryption import Cipher
from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._events import (
    ChannelClosed,
    ChannelOpened,
    DataKeyRequested,
    ErrorOutputReceived,
    ExitCodeReceived,
    OutputReceived,
)
from pyinfra_ssm._messages import AgentMessage, PayloadType
from pyinfra_ssm._payloads import (
    Action,
    EncryptionChallenge,
    HandshakeComplete,
    HandshakeRequest,
    HandshakeResponse,
)
from pyinfra_ssm._states import State
from tests.ssm.agent_end import output
from tests.ssm.channels import CLIENT, new_channel, sent_input
from tests.ssm.vectors import recorded


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
