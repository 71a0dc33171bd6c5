import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import AgentMessage, MessageType, PayloadType
from tests.ssm.vectors import every_binary_frame, names, recorded

type_names = st.text(st.characters(codec="ascii", exclude_characters=" \0"), max_size=32)
messages = st.builds(
    AgentMessage,
    message_type=st.sampled_from(MessageType) | type_names,
    message_id=st.uuids(),
    payload=st.binary(max_size=200),
    sequence=st.integers(-(2**63), 2**63 - 1),
    flags=st.integers(0, 2**64 - 1),
    payload_type=st.sampled_from(PayloadType) | st.integers(0, 2**32 - 1),
    created=st.integers(0, 2**64 - 1),
    schema_version=st.integers(0, 2**32 - 1),
    digest=st.just(b"") | st.binary(min_size=32, max_size=32),
)


@pytest.mark.parametrize("name", names())
def test_recorded_frames_decode_to_their_fields_and_encode_to_their_bytes(name: str) -> None:
    for frame in (f for f in recorded(name) if f.kind == "binary"):
        message = AgentMessage.decode(frame.raw)

        assert {
            "header_length": 116,
            "message_type": message.message_type,
            "schema_version": message.schema_version,
            "created_date": message.created,
            "sequence_number": message.sequence,
            "flags": message.flags,
            "message_id": str(message.message_id),
            "payload_digest": message.digest.hex(),
            "payload_type": message.payload_type,
            "payload_length": len(message.payload),
        } == {k: v for k, v in frame.fields.items() if k != "payload"}
        assert frame.fields["payload"] in (None, message.payload.decode(errors="replace"))
        assert message.encode() == frame.raw


def test_only_the_frame_that_was_recorded_with_a_wrong_digest_is_not_intact() -> None:
    broken = [name for name, f in every_binary_frame() if not AgentMessage.decode(f.raw).is_intact]
    assert broken == ["06_duplicate_reorder"]


@given(messages)
def test_decode_inverts_encode(message: Any) -> None:
    assert AgentMessage.decode(message.encode()) == message


@given(st.binary(max_size=300) | messages.map(AgentMessage.encode), st.data())
def test_any_bytes_give_a_message_or_a_protocol_error(raw: bytes, data: Any) -> None:
    if raw:
        at = data.draw(st.integers(0, len(raw) - 1))
        raw = raw[:at] + data.draw(st.binary(max_size=3)) + raw[at + 1 :]
    try:
        message = AgentMessage.decode(raw)
    except ProtocolError:
        return
    assert AgentMessage.decode(message.encode()) == message


def test_a_frame_laid_out_by_hand() -> None:
    raw = b"".join(
        [
            struct.pack(">I", 116),
            b"input_stream_data" + b" " * 15,
            struct.pack(">I", 1),
            struct.pack(">Q", 1_700_000_000_000),
            struct.pack(">q", 7),
            struct.pack(">Q", 1),
            bytes.fromhex("8899aabbccddeeff 0011223344556677"),
            bytes.fromhex("e9fe7e88e89d532379960402db8f9458194dae772aa5fda5a12806c22215f0ff"),
            struct.pack(">I", 1),
            struct.pack(">I", 3),
            b"ls\n",
        ]
    )
    assert AgentMessage.decode(raw) == AgentMessage(
        MessageType.INPUT,
        UUID("00112233-4455-6677-8899-aabbccddeeff"),
        b"ls\n",
        sequence=7,
        flags=1,
        payload_type=PayloadType.OUTPUT,
        created=1_700_000_000_000,
    )


GOOD = AgentMessage(MessageType.INPUT, UUID(int=1), b"data").encode()
BAD = {
    "nothing at all": b"",
    "a header cut short": GOOD[:119],
    "another header length": struct.pack(">I", 120) + GOOD[4:],
    "a payload cut short": GOOD[:-1],
    "bytes after the payload": GOOD + b"!",
    "a type that is not ASCII": GOOD[:4] + b"\xff" + GOOD[5:],
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_what_breaks_the_layout_is_a_protocol_error(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        AgentMessage.decode(raw)


PAUSE = AgentMessage(MessageType.PAUSE_PUBLICATION, UUID(int=1), b"{}").encode()
BARE = {
    "no header length": bytes(4) + PAUSE[4:],
    "no digest": PAUSE[:80] + bytes(32) + PAUSE[112:],
    "no payload length": PAUSE[:116] + bytes(4) + PAUSE[120:],
}


@pytest.mark.parametrize("raw", BARE.values(), ids=BARE)
def test_of_a_pause_only_the_type_counts(raw: bytes) -> None:
    message = AgentMessage.decode(raw)
    assert message.message_type == MessageType.PAUSE_PUBLICATION
    assert message.is_intact


def test_no_payload_needs_no_digest() -> None:
    assert AgentMessage(MessageType.OUTPUT, UUID(int=1), digest=bytes(32)).is_intact


def test_a_message_type_that_does_not_fit_is_refused_before_it_is_cut() -> None:
    with pytest.raises(ValueError, match="over 32 characters"):
        AgentMessage("x" * 33, UUID(int=1))
