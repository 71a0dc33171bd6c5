"""AES-GCM with the two halves of a KMS data key, for accounts that encrypt their sessions.

As in the agent: https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/crypto/encrypter.go
Not recorded: tested against KMS as moto plays it, and a second implementation of the layout.
"""

import os
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyinfra_ssm._errors import ProtocolError

DATA_KEY_BYTES = 64  # the agent asks GenerateDataKey for this many and cuts them in the middle
_NONCE_BYTES = 12


def encryption_context(session_id: str, target: str) -> dict[str, str]:
    """Return the KMS context that both ends name, so that a data key opens one session only."""
    return {"aws:ssm:SessionId": session_id, "aws:ssm:TargetId": target}


class Cipher:
    """One end of an encrypted session. Every message is a fresh nonce and what it encrypts."""

    def __init__(
        self,
        encrypt_with: bytes,
        decrypt_with: bytes,
        new_nonce: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._sealer = AESGCM(encrypt_with)
        self._opener = AESGCM(decrypt_with)
        self._new_nonce = new_nonce

    @classmethod
    def of_client(cls, data_key: bytes) -> "Cipher":
        """Return the client's end: it decrypts with the first half, encrypts with the second."""
        first, second = _halves(data_key)
        return cls(encrypt_with=second, decrypt_with=first)

    @classmethod
    def of_agent(cls, data_key: bytes) -> "Cipher":
        first, second = _halves(data_key)
        return cls(encrypt_with=first, decrypt_with=second)

    def encrypt(self, plaintext: bytes) -> bytes:
        nonce = self._new_nonce(_NONCE_BYTES)
        return nonce + self._sealer.encrypt(nonce, plaintext, None)

    def decrypt(self, sealed: bytes) -> bytes:
        """Return the plaintext, or raise ProtocolError if it was not sealed with our key."""
        try:
            return self._opener.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except (InvalidTag, ValueError) as error:
            raise ProtocolError("a payload is not encrypted with this session's key") from error


def _halves(data_key: bytes) -> tuple[bytes, bytes]:
    if len(data_key) != DATA_KEY_BYTES:
        raise ProtocolError(f"data key of {len(data_key)} bytes, wanted {DATA_KEY_BYTES}")
    return data_key[: DATA_KEY_BYTES // 2], data_key[DATA_KEY_BYTES // 2 :]
