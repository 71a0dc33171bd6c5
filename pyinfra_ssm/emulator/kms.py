"""Encrypted sessions: the agent's cipher, and a KMS of the emulator's own to make its keys.

A data key has 64 bytes: the agent encrypts with the first half, which the client decrypts with,
and decrypts with the second. AES-GCM, a 12-byte nonce in front of the text. Source:
https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/crypto/blockcipher.go
"""

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import AgentMessage
from pyinfra_ssm.emulator.errors import ApiError

DATA_KEY_BYTES = 64
_NONCE_BYTES = 12


class Cipher:
    """The agent's side of one session's encryption."""

    def __init__(self, data_key: bytes) -> None:
        half = DATA_KEY_BYTES // 2
        self._to_client, self._from_client = AESGCM(data_key[:half]), AESGCM(data_key[half:])

    def encrypt(self, plain: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._to_client.encrypt(nonce, plain, None)

    def decrypt(self, secret: bytes) -> bytes:
        """Return the text, or raise ProtocolError if it was not encrypted for this session."""
        nonce, text = secret[:_NONCE_BYTES], secret[_NONCE_BYTES:]
        try:
            return self._from_client.decrypt(nonce, text, None)
        except (InvalidTag, ValueError) as error:
            raise ProtocolError("input is not encrypted with the session's key") from error

    def decrypted(self, message: AgentMessage) -> AgentMessage:
        return replace(message, payload=self.decrypt(message.payload), digest=b"")


class KeyService(Protocol):
    """Where the agent has data keys decrypted."""

    async def decrypt(self, blob: bytes, context: Mapping[str, str]) -> bytes:
        """Return the data key; ApiError if blob and context do not belong together."""


class OwnKms:
    """GenerateDataKey and Decrypt, for as long as the emulator lives."""

    def __init__(self) -> None:
        self._keys: dict[bytes, tuple[bytes, dict[str, str]]] = {}

    async def decrypt(self, blob: bytes, context: Mapping[str, str]) -> bytes:
        plain, wanted = self._keys.get(blob, (b"", {}))
        if not plain or dict(context) != wanted:
            raise ApiError("InvalidCiphertextException", "blob or encryption context is wrong")
        return plain

    async def call(self, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API call of KMS."""
        context = parameters.get("EncryptionContext", {})
        if action == "GenerateDataKey":
            size = 32 if "KeySpec" in parameters else int(parameters.get("NumberOfBytes", 0))
            blob, plain = os.urandom(DATA_KEY_BYTES), os.urandom(size)
            self._keys[blob] = plain, dict(context)
            key = {"KeyId": parameters["KeyId"], "CiphertextBlob": base64.b64encode(blob).decode()}
        elif action == "Decrypt":
            plain = await self.decrypt(base64.b64decode(parameters["CiphertextBlob"]), context)
            key = {"KeyId": parameters.get("KeyId", "")}
        else:
            raise ApiError("UnknownOperationException", f"the emulator's KMS has no {action}")
        return key | {"Plaintext": base64.b64encode(plain).decode()}


class RemoteKms:
    """An emulated KMS elsewhere, for example moto's: it is sent made-up credentials."""

    def __init__(self, endpoint_url: str) -> None:
        self._endpoint_url = endpoint_url

    async def decrypt(self, blob: bytes, context: Mapping[str, str]) -> bytes:
        return await asyncio.to_thread(self._decrypt, blob, context)

    def _decrypt(self, blob: bytes, context: Mapping[str, str]) -> bytes:
        # Imported where it is needed: rarely, and it is a fifth of the emulator's start.
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        kms = boto3.client(
            "kms",
            endpoint_url=self._endpoint_url,
            region_name=os.environ.get("AWS_DEFAULT_REGION", "us-east-1"),
            aws_access_key_id="emulator",
            aws_secret_access_key="emulator",
        )
        try:
            answer = kms.decrypt(CiphertextBlob=blob, EncryptionContext=context)
            return bytes(answer["Plaintext"])
        except (BotoCoreError, ClientError) as error:
            raise ApiError("InvalidCiphertextException", str(error)) from error
