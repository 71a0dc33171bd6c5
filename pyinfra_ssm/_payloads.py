"""JSON payloads of the data channel, to and from bytes: acknowledgement, handshake, closing.

Member names and values are those of recorded frames. Decoding is total: a value or ProtocolError.
The encryption parts, which no recording shows, follow the agent's source:
https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/contracts/model.go
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import AgentMessage, Flags, MessageType

MESSAGE_SCHEMA_VERSION = "1.0"
# Agents switch features on by the version of the plug-in that they think they talk to. This one
# was recorded with agent 3.3, separate output streams and exit codes included.
CLIENT_VERSION = "1.2.677.0"


class ActionType(StrEnum):
    """What an agent may ask of a client in its handshake."""

    SESSION_TYPE = "SessionType"
    KMS_ENCRYPTION = "KMSEncryption"


class ActionStatus(IntEnum):
    """What came of it."""

    SUCCESS = 1
    FAILED = 2
    UNSUPPORTED = 3


def _dump(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()


def _load(payload: bytes, what: str) -> dict[str, Any]:
    try:
        members = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{what} is not JSON: {payload[:80]!r}") from error
    if not isinstance(members, dict):
        raise ProtocolError(f"{what} is not a JSON object: {payload[:80]!r}")
    return members


def _text(members: Mapping[str, Any], key: str, what: str, default: str | None = None) -> str:
    value = members.get(key, default)
    if value is None and default is not None:
        return default  # the reference plug-in writes null where it means nothing
    if not isinstance(value, str):
        raise ProtocolError(f"{what} has {key} {value!r}, wanted a string")
    return value


def _number(members: Mapping[str, Any], key: str, what: str) -> int:
    value = members.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError(f"{what} has {key} {value!r}, wanted a whole number")
    return value


def _blob(members: Mapping[str, Any], key: str, what: str) -> bytes:
    try:
        return base64.b64decode(_text(members, key, what), validate=True)
    except ValueError as error:
        raise ProtocolError(f"{what} has a {key} that is not base64") from error


@dataclass(frozen=True, slots=True)
class OpenDataChannel:
    """The one text frame with which either end opens its socket to the service."""

    token: str
    request_id: UUID
    client_id: UUID

    def encode(self) -> str:
        return json.dumps(
            {
                "MessageSchemaVersion": MESSAGE_SCHEMA_VERSION,
                "RequestId": str(self.request_id),
                "TokenValue": self.token,
                "ClientId": str(self.client_id),
                "ClientVersion": CLIENT_VERSION,
            }
        )


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Which frame arrived. The message id is what counts; the number is only a cross-check."""

    message_type: str
    message_id: UUID
    sequence: int

    @classmethod
    def of(cls, message: AgentMessage) -> "Acknowledgement":
        return cls(message.message_type, message.message_id, message.sequence)

    def encode(self) -> bytes:
        return _dump(
            {
                "AcknowledgedMessageType": str(self.message_type),
                "AcknowledgedMessageId": str(self.message_id),
                "AcknowledgedMessageSequenceNumber": self.sequence,
                "IsSequentialMessage": True,
            }
        )

    def frame(self, message_id: UUID, created: int) -> AgentMessage:
        """Return the acknowledge frame; its number is 0 and its flags are 3, in both directions."""
        return AgentMessage(
            MessageType.ACKNOWLEDGE,
            message_id,
            self.encode(),
            flags=Flags.SYN | Flags.FIN,
            created=created,
        )

    @classmethod
    def decode(cls, payload: bytes) -> "Acknowledgement":
        what = "acknowledgement"
        members = _load(payload, what)
        text = _text(members, "AcknowledgedMessageId", what)
        try:
            message_id = UUID(text)
        except ValueError as error:
            raise ProtocolError(f"acknowledged message id {text!r} is no UUID") from error
        return cls(
            _text(members, "AcknowledgedMessageType", what),
            message_id,
            _number(members, "AcknowledgedMessageSequenceNumber", what),
        )


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the agent asks for; `parameters` are its own and differ by type."""

    type: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HandshakeRequest:
    agent_version: str
    actions: tuple[Action, ...]

    def encode(self) -> bytes:
        actions = [{"ActionType": a.type, "ActionParameters": a.parameters} for a in self.actions]
        return _dump({"AgentVersion": self.agent_version, "RequestedClientActions": actions})

    @classmethod
    def decode(cls, payload: bytes) -> "HandshakeRequest":
        what = "handshake request"
        members = _load(payload, what)
        listed = members.get("RequestedClientActions") or []
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise ProtocolError(f"{what} has RequestedClientActions {listed!r}, wanted objects")
        return cls(_text(members, "AgentVersion", what), tuple(map(_action, listed)))


def _action(members: Mapping[str, Any]) -> Action:
    parameters = members.get("ActionParameters") or {}
    if not isinstance(parameters, dict):
        raise ProtocolError(f"handshake action has parameters {parameters!r}, wanted an object")
    return Action(_text(members, "ActionType", "handshake action"), parameters)


@dataclass(frozen=True, slots=True)
class ProcessedAction:
    type: str
    status: int
    result: Mapping[str, Any] | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class HandshakeResponse:
    actions: tuple[ProcessedAction, ...]
    errors: tuple[str, ...] = ()
    client_version: str = CLIENT_VERSION

    def encode(self) -> bytes:
        """Return compact JSON; no errors are null, as the reference plug-in writes it."""
        actions = [
            {
                "ActionType": str(action.type),
                "ActionStatus": int(action.status),
                "ActionResult": action.result,
                "Error": action.error,
            }
            for action in self.actions
        ]
        return _dump(
            {
                "ClientVersion": self.client_version,
                "ProcessedClientActions": actions,
                "Errors": list(self.errors) or None,
            }
        )

    @classmethod
    def decode(cls, payload: bytes) -> "HandshakeResponse":
        what = "handshake response"
        members = _load(payload, what)
        listed, errors = (members.get(k) or [] for k in ("ProcessedClientActions", "Errors"))
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise ProtocolError(f"{what} has ProcessedClientActions {listed!r}, wanted objects")
        if not isinstance(errors, list):
            raise ProtocolError(f"{what} has Errors {errors!r}, wanted a list")
        actions = tuple(
            ProcessedAction(
                _text(each, "ActionType", what),
                _number(each, "ActionStatus", what),
                each.get("ActionResult"),
                _text(each, "Error", what, default=""),
            )
            for each in listed
        )
        return cls(actions, tuple(map(str, errors)), _text(members, "ClientVersion", what))


@dataclass(frozen=True, slots=True)
class HandshakeComplete:
    """`elapsed` is in nanoseconds; `customer_message` is what the account wants shown."""

    elapsed: int = 0
    customer_message: str = ""

    def encode(self) -> bytes:
        members = {
            "HandshakeTimeToComplete": self.elapsed,
            "CustomerMessage": self.customer_message,
        }
        return _dump(members)

    @classmethod
    def decode(cls, payload: bytes) -> "HandshakeComplete":
        members = _load(payload, "handshake completion")
        elapsed = _number(members, "HandshakeTimeToComplete", "handshake completion")
        return cls(elapsed, _text(members, "CustomerMessage", "handshake completion", default=""))


@dataclass(frozen=True, slots=True)
class EncryptionChallenge:
    """Types 8 and 9: random bytes under the session's keys, to prove that both ends have them."""

    challenge: bytes

    def encode(self) -> bytes:
        return _dump({"Challenge": base64.b64encode(self.challenge).decode()})

    @classmethod
    def decode(cls, payload: bytes) -> "EncryptionChallenge":
        return cls(_blob(_load(payload, "encryption challenge"), "Challenge", "challenge"))


@dataclass(frozen=True, slots=True)
class ClosingNotice:
    """Why a channel closed: `output` is empty after an ordinary end."""

    session_id: str
    output: str = ""

    @classmethod
    def decode(cls, payload: bytes) -> "ClosingNotice":
        members = _load(payload, "channel_closed")
        what = "channel_closed"
        return cls(
            _text(members, "SessionId", what, default=""),
            _text(members, "Output", what, default=""),
        )


def decode_flag(payload: bytes) -> int:
    """Return the number in a payload of type FLAG."""
    if len(payload) != 4:
        raise ProtocolError(f"flag of {len(payload)} bytes, wanted 4")
    return int.from_bytes(payload, "big")


def decode_exit_code(payload: bytes) -> int:
    """Return n from `EXIT_CODE: n`; -1 is what the agent makes of most deaths by signal."""
    label, _, number = payload.decode("ascii", "replace").partition(":")
    try:
        if label != "EXIT_CODE":
            raise ValueError(label)
        return int(number)
    except ValueError:
        raise ProtocolError(f"exit code payload {payload[:40]!r}, wanted EXIT_CODE: n") from None
