"""What a client answers to the handshake request of an agent; pure."""

import base64
from dataclasses import dataclass

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._payloads import (
    Action,
    ActionStatus,
    ActionType,
    HandshakeRequest,
    HandshakeResponse,
    ProcessedAction,
)

_SESSION_TYPES = {"Standard_Stream", "InteractiveCommands", "NonInteractiveCommands", "Port"}


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """KMS's encrypted form of the session's data key, or why there is none."""

    ciphertext: bytes = b""
    error: str = ""


def requested_key(request: HandshakeRequest) -> str | None:
    """Return the id of the KMS key that the session must be encrypted with, if any."""
    for action in request.actions:
        if action.type == ActionType.KMS_ENCRYPTION:
            key_id = action.parameters.get("KMSKeyId")
            if not isinstance(key_id, str):
                raise ProtocolError(f"encryption asked for with the key {key_id!r}")
            return key_id
    return None


def answer(request: HandshakeRequest, key: KeyAnswer | None = None) -> HandshakeResponse:
    """Return the response; `key` is needed when requested_key() named one."""
    actions = tuple(_process(action, key or KeyAnswer()) for action in request.actions)
    failed = (each.error for each in actions if each.status == ActionStatus.FAILED)
    return HandshakeResponse(actions, errors=tuple(failed))


def _process(action: Action, key: KeyAnswer) -> ProcessedAction:
    match action.type:
        case ActionType.SESSION_TYPE:
            return _accept_session(action)
        case ActionType.KMS_ENCRYPTION if key.error:
            return ProcessedAction(action.type, ActionStatus.FAILED, error=key.error)
        case ActionType.KMS_ENCRYPTION:
            result = {"KMSCipherTextKey": base64.b64encode(key.ciphertext).decode()}
            return ProcessedAction(action.type, ActionStatus.SUCCESS, result)
    error = f"Unsupported action {action.type}"
    return ProcessedAction(action.type, ActionStatus.UNSUPPORTED, error=error)


def _accept_session(action: Action) -> ProcessedAction:
    session_type = action.parameters.get("SessionType")
    if session_type in _SESSION_TYPES:
        return ProcessedAction(action.type, ActionStatus.SUCCESS)
    error = f"Unknown session type {session_type}"
    return ProcessedAction(action.type, ActionStatus.FAILED, error=error)
