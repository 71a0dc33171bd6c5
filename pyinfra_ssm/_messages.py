"""AgentMessage, the binary frame of a Session Manager data channel, to and from bytes.

Layout, big-endian, as recorded from agent 3.3 and as in `agentmessage.go` of the agent
(https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/contracts/agentmessage.go):

    offset  size  field
         0     4  HeaderLength    116: where PayloadLength lies, not where the payload does
         4    32  MessageType     ASCII, padded with spaces
        36     4  SchemaVersion
        40     8  CreatedDate     milliseconds since the epoch
        48     8  SequenceNumber  signed
        56     8  Flags           bit 0 SYN, bit 1 FIN
        64    16  MessageId       UUID, its low 8 bytes first
        80    32  PayloadDigest   SHA-256 of the payload
       112     4  PayloadType
       116     4  PayloadLength
       120     n  Payload
"""

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from uuid import UUID

from pyinfra_ssm._errors import ProtocolError

_HEADER = struct.Struct("!I32sIQqQ16s32sII")
_HEADER_LENGTH = 116
_TYPE_WIDTH = 32


class MessageType(StrEnum):
    """Frames of the data channel; who sends each is in the comment."""

    INPUT = "input_stream_data"  # client to agent
    OUTPUT = "output_stream_data"  # agent to client
    ACKNOWLEDGE = "acknowledge"  # both
    SESSION_STATE = "agent_session_state"  # agent to service
    CHANNEL_CLOSED = "channel_closed"  # service
    PAUSE_PUBLICATION = "pause_publication"  # service
    START_PUBLICATION = "start_publication"  # service


# The reference plug-in exempts these two from every check, so the service may leave fields empty:
# https://github.com/aws/session-manager-plugin/blob/mainline/src/message/messageparser.go
_UNCHECKED = {MessageType.PAUSE_PUBLICATION, MessageType.START_PUBLICATION}


class PayloadType(IntEnum):
    """What the payload of a stream frame holds; frames of other types carry NONE."""

    NONE = 0
    OUTPUT = 1  # also plain input
    ERROR = 2
    SIZE = 3
    PARAMETER = 4
    HANDSHAKE_REQUEST = 5
    HANDSHAKE_RESPONSE = 6
    HANDSHAKE_COMPLETE = 7
    ENCRYPTION_CHALLENGE_REQUEST = 8
    ENCRYPTION_CHALLENGE_RESPONSE = 9
    FLAG = 10
    STDERR = 11
    EXIT_CODE = 12


class Flags(IntFlag):
    """Stream position marks. Acknowledgements carry both; the agent's first frame carries SYN."""

    NONE = 0
    SYN = 1
    FIN = 2


class SessionFlag(IntEnum):
    """The 4-byte number in a payload of type FLAG."""

    DISCONNECT_TO_PORT = 1
    TERMINATE_SESSION = 2
    CONNECT_TO_PORT_ERROR = 3

    def encode(self) -> bytes:
        return self.to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class AgentMessage:
    """One frame. Equal frames have equal bytes.

    `created` is in milliseconds since the epoch. `digest` is filled in when left empty; a received
    one is kept as it came: `is_intact` can tell, and the frame encodes back to its own bytes.
    """

    message_type: str
    message_id: UUID
    payload: bytes = b""
    sequence: int = 0
    flags: int = Flags.NONE
    payload_type: int = PayloadType.NONE
    created: int = 0
    schema_version: int = 1
    digest: bytes = b""

    def __post_init__(self) -> None:
        if len(self.message_type) > _TYPE_WIDTH:
            raise ValueError(f"message type is over {_TYPE_WIDTH} characters: {self.message_type}")
        if not self.digest:
            object.__setattr__(self, "digest", hashlib.sha256(self.payload).digest())

    @property
    def is_intact(self) -> bool:
        """Whether the payload has the digest that its sender wrote beside it.

        The agent does not look (recorded: it runs input with a wrong digest); a client should, but
        no more strictly than the reference plug-in, which takes no payload as it comes.
        """
        if not self.payload or self.message_type in _UNCHECKED:
            return True
        return hashlib.sha256(self.payload).digest() == self.digest

    def encode(self) -> bytes:
        header = _HEADER.pack(
            _HEADER_LENGTH,
            self.message_type.encode("ascii").ljust(_TYPE_WIDTH),
            self.schema_version,
            self.created,
            self.sequence,
            self.flags,
            self.message_id.bytes[8:] + self.message_id.bytes[:8],
            self.digest,
            self.payload_type,
            len(self.payload),
        )
        return header + self.payload

    @classmethod
    def decode(cls, raw: bytes) -> "AgentMessage":
        """Return the frame in `raw`, a whole websocket message, or raise ProtocolError."""
        if len(raw) < _HEADER.size:
            raise ProtocolError(f"frame of {len(raw)} bytes; a header alone is {_HEADER.size}")
        length, name, version, created, sequence, flags, ident, digest, kind, size = (
            _HEADER.unpack_from(raw)
        )
        message_type = _decode_type(name)
        if length != _HEADER_LENGTH and message_type not in _UNCHECKED:
            raise ProtocolError(f"header length {length}; known agents send {_HEADER_LENGTH}")
        if size != len(raw) - _HEADER.size and message_type not in _UNCHECKED:
            raise ProtocolError(f"payload length {size}; {len(raw) - _HEADER.size} bytes follow")
        return cls(
            message_type=message_type,
            message_id=UUID(bytes=ident[8:] + ident[:8]),
            payload=raw[_HEADER.size :],
            sequence=sequence,
            flags=flags,
            payload_type=kind,
            created=created,
            schema_version=version,
            digest=digest,
        )


def _decode_type(name: bytes) -> str:
    """Return the message type; the agent's own parser strips NUL padding too, so both pass."""
    try:
        return name.rstrip(b" \0").decode("ascii")
    except UnicodeDecodeError:
        raise ProtocolError(f"message type is not ASCII: {name!r}") from None
