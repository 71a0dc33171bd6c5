import contextlib
import json
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import AgentMessage, PayloadType, SessionFlag
from pyinfra_ssm._payloads import (
    Acknowledgement,
    Action,
    ClosingNotice,
    EncryptionChallenge,
    HandshakeComplete,
    HandshakeRequest,
    HandshakeResponse,
    ProcessedAction,
    decode_exit_code,
    decode_flag,
)
from tests.ssm.vectors import every_binary_frame

json_values = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
texts = st.text(max_size=20)

ROUND_TRIPS: dict[Any, Any] = {
    Acknowledgement: st.builds(Acknowledgement, texts, st.uuids(), st.integers()),
    HandshakeRequest: st.builds(
        HandshakeRequest, texts, st.lists(st.builds(Action, texts, objects)).map(tuple)
    ),
    HandshakeResponse: st.builds(
        HandshakeResponse,
        st.lists(st.builds(ProcessedAction, texts, st.integers(), st.none() | objects, texts)).map(
            tuple
        ),
        st.lists(texts).map(tuple),
        texts,
    ),
    HandshakeComplete: st.builds(HandshakeComplete, st.integers(), texts),
    EncryptionChallenge: st.builds(EncryptionChallenge, st.binary(max_size=40)),
}
actions = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ["ActionType", "ActionParameters", "ActionStatus", "Error"], json_values | objects
    ),
)
values = json_values | objects | st.lists(json_values | actions, max_size=2)
DECODERS = [*(kind.decode for kind in ROUND_TRIPS), ClosingNotice.decode]


@given(st.sampled_from(list(ROUND_TRIPS)).flatmap(lambda kind: ROUND_TRIPS[kind]))
def test_decode_inverts_encode(payload: Any) -> None:
    kind = cast(Any, type(payload))
    assert kind.decode(payload.encode()) == payload


@pytest.mark.parametrize("decode", [*DECODERS, decode_flag, decode_exit_code])
@given(raw=st.binary(max_size=60) | json_values.map(json.dumps).map(str.encode))
def test_any_bytes_give_a_payload_or_a_protocol_error(decode: Any, raw: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode(raw)


@pytest.mark.parametrize("decode", DECODERS)
@given(
    members=st.dictionaries(
        st.sampled_from(
            [
                "AcknowledgedMessageType",
                "AcknowledgedMessageId",
                "AcknowledgedMessageSequenceNumber",
                "AgentVersion",
                "RequestedClientActions",
                "ClientVersion",
                "ProcessedClientActions",
                "Errors",
                "HandshakeTimeToComplete",
                "CustomerMessage",
                "Challenge",
                "Output",
                "SessionId",
            ]
        ),
        values,
    )
)
def test_known_members_with_wrong_values_are_a_protocol_error(decode: Any, members: Any) -> None:
    with contextlib.suppress(ProtocolError):
        decode(json.dumps(members).encode())


RECORDED: dict[int, Any] = {
    PayloadType.HANDSHAKE_REQUEST: HandshakeRequest,
    PayloadType.HANDSHAKE_COMPLETE: HandshakeComplete,
}


def test_recorded_payloads_of_agent_and_plugin_encode_to_their_bytes() -> None:
    seen = set()
    for name, frame in every_binary_frame():
        message = AgentMessage.decode(frame.raw)
        kind = RECORDED.get(message.payload_type)
        if message.message_type == "acknowledge" and b", " not in message.payload:
            kind = Acknowledgement
        if message.payload_type == PayloadType.HANDSHAKE_RESPONSE and name.startswith("04"):
            kind = HandshakeResponse
        # An agent writes "Properties":null, which is a member of the parameters like any other.
        if kind:
            seen.add(kind)
            assert kind.decode(message.payload).encode() == message.payload, name
    assert seen == {Acknowledgement, HandshakeRequest, HandshakeResponse, HandshakeComplete}


def test_recorded_exit_codes_flags_and_endings() -> None:
    assert decode_exit_code(b"EXIT_CODE: 3") == 3
    assert decode_exit_code(b"EXIT_CODE: -1") == -1
    assert decode_flag(SessionFlag.TERMINATE_SESSION.encode()) == 2
    notices = [
        ClosingNotice.decode(AgentMessage.decode(frame.raw).payload)
        for _, frame in every_binary_frame()
        if frame.fields["message_type"] == "channel_closed"
    ]
    assert sum(bool(notice.output) for notice in notices) == 1
    assert any("failed unexpectedly" in notice.output for notice in notices)


def test_an_acknowledged_id_that_is_no_uuid_is_a_protocol_error() -> None:
    payload = Acknowledgement("output_stream_data", UUID(int=1), 0).encode()
    with pytest.raises(ProtocolError, match="no UUID"):
        Acknowledgement.decode(payload.replace(b"0000-0000", b"zzzz-0000"))
