"""The handshake that an agent starts when the session type or encryption asks for one."""

import asyncio
import base64
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pyinfra_ssm._errors import ProtocolError, SSMError
from pyinfra_ssm._messages import AgentMessage, PayloadType
from pyinfra_ssm._payloads import (
    Action,
    ActionStatus,
    ActionType,
    EncryptionChallenge,
    HandshakeComplete,
    HandshakeRequest,
    HandshakeResponse,
)
from pyinfra_ssm.emulator.errors import ApiError
from pyinfra_ssm.emulator.kms import Cipher, KeyService

AGENT_VERSION = "3.3.0.0"
_TIME_LIMIT = 15.0  # seconds, for the response and again for the challenge (source)
_ENCRYPTED = "This session is encrypted using AWS KMS."
_TOO_LATE = (
    "Handshake timed out. Please ensure that you have the latest version of the session "
    "manager plugin."
)

_T = TypeVar("_T")
Output = Callable[[PayloadType, bytes], Awaitable[None]]


class HandshakeError(SSMError):
    """The handshake failed: the session ends with this text."""


class Handshake:
    """`key` is the id of a KMS key, or None; `context` is its encryption context."""

    def __init__(
        self,
        session_type: str,
        properties: Mapping[str, Any] | None,
        *,
        key: str | None,
        customer_message: str,
        key_service: KeyService,
        context: Mapping[str, str],
    ) -> None:
        self._session_type = {"SessionType": session_type, "Properties": properties}
        self._key = key
        self._message = customer_message or (_ENCRYPTED if key is not None else "")
        self._key_service = key_service
        self._context = context
        loop = asyncio.get_running_loop()
        self._response: asyncio.Future[HandshakeResponse] = loop.create_future()
        self._challenge: asyncio.Future[EncryptionChallenge] = loop.create_future()
        self.is_complete = False

    async def perform(self, output: Output) -> Cipher | None:
        """Shake hands; return the session's cipher, if it has one, or raise HandshakeError."""
        started = time.monotonic_ns()
        await output(PayloadType.HANDSHAKE_REQUEST, self._request().encode())
        response = await _within(self._response, _TOO_LATE)
        cipher = await self._cipher(response)
        if cipher is not None:
            await self._prove(cipher, output)
        complete = HandshakeComplete(time.monotonic_ns() - started, self._message)
        await output(PayloadType.HANDSHAKE_COMPLETE, complete.encode())
        self.is_complete = True
        return cipher

    async def handle(self, message: AgentMessage) -> None:
        """Take what belongs to the handshake; ignore the rest."""
        if message.payload_type == PayloadType.HANDSHAKE_RESPONSE and not self._response.done():
            self._response.set_result(HandshakeResponse.decode(message.payload))
        elif (
            message.payload_type == PayloadType.ENCRYPTION_CHALLENGE_RESPONSE
            and not self._challenge.done()
        ):
            self._challenge.set_result(EncryptionChallenge.decode(message.payload))

    def _request(self) -> HandshakeRequest:
        actions = [Action(ActionType.SESSION_TYPE, self._session_type)]
        if self._key is not None:
            actions.append(Action(ActionType.KMS_ENCRYPTION, {"KMSKeyId": self._key}))
        return HandshakeRequest(AGENT_VERSION, tuple(actions))

    async def _cipher(self, response: HandshakeResponse) -> Cipher | None:
        blob = b""
        for action in response.actions:
            if action.status != ActionStatus.SUCCESS:
                raise HandshakeError(
                    f"{action.type} failed on client with status {action.status} "
                    f"error: {action.error}"
                )
            if action.type == ActionType.KMS_ENCRYPTION:
                blob = base64.b64decode((action.result or {}).get("KMSCipherTextKey", ""))
        if self._key is None:
            return None
        try:
            return Cipher(await self._key_service.decrypt(blob, self._context))
        except ApiError as error:
            raise HandshakeError(f"Fetching data key failed: {error}") from error

    async def _prove(self, cipher: Cipher, output: Output) -> None:
        secret = os.urandom(64)
        request = EncryptionChallenge(cipher.encrypt(secret))
        await output(PayloadType.ENCRYPTION_CHALLENGE_REQUEST, request.encode())
        response = await _within(self._challenge, "Timed out waiting for encryption challenge.")
        try:
            if cipher.decrypt(response.challenge) == secret:
                return
        except ProtocolError as error:
            raise HandshakeError(str(error)) from error
        raise HandshakeError("Encryption challenge does not match!")


async def _within(future: "asyncio.Future[_T]", too_late: str) -> _T:
    try:
        return await asyncio.wait_for(future, _TIME_LIMIT)
    except TimeoutError:
        raise HandshakeError(too_late) from None
