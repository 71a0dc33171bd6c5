"""Encrypted sessions, with a client written from the protocol: the other halves of the key."""

import base64
import json
import os
from collections.abc import Callable, Iterator

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from moto.server import ThreadedMotoServer

from pyinfra_ssm._messages import PayloadType
from pyinfra_ssm._payloads import (
    ActionStatus,
    ActionType,
    EncryptionChallenge,
    HandshakeComplete,
    HandshakeResponse,
    ProcessedAction,
)
from pyinfra_ssm.emulator import DEFAULT_ID, Emulator
from tests.ssm.emulator.client import Client, service

Start = Callable[..., Emulator]


class Cipher:
    """The client's: it decrypts with the first half of the data key, encrypts with the second."""

    def __init__(self, data_key: bytes) -> None:
        self._reader, self._writer = AESGCM(data_key[:32]), AESGCM(data_key[32:])

    def encrypt(self, plain: bytes) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._writer.encrypt(nonce, plain, None)

    def decrypt(self, secret: bytes) -> bytes:
        return self._reader.decrypt(secret[:12], secret[12:], None)


def respond(client: Client, blob: bytes) -> None:
    """Answer the handshake with an encrypted data key."""
    result = {
        "KMSCipherTextKey": base64.b64encode(blob).decode(),
        "KMSCipherTextHash": "",
    }
    actions = (
        ProcessedAction(ActionType.SESSION_TYPE, ActionStatus.SUCCESS),
        ProcessedAction(ActionType.KMS_ENCRYPTION, ActionStatus.SUCCESS, result),
    )
    client.send(HandshakeResponse(actions).encode(), PayloadType.HANDSHAKE_RESPONSE)


def context(client: Client) -> dict[str, str]:
    return {"aws:ssm:SessionId": client.session_id, "aws:ssm:TargetId": DEFAULT_ID}


@pytest.fixture(params=["own", "moto"])
def encrypted(request: pytest.FixtureRequest, start: Start) -> Iterator[tuple[Emulator, str, str]]:
    """Yield an emulator, the endpoint of its KMS and the id of its key."""
    if request.param == "own":
        emulator = start(kms_key="alias/sessions")
        yield emulator, emulator.endpoint_url, "alias/sessions"
        return
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    emulator = start(kms_endpoint_url=endpoint)
    moto = Emulator()
    moto.endpoint_url = endpoint
    key = service(moto, "kms").create_key()["KeyMetadata"]["KeyId"]
    emulator.set_faults(kms_key=key)
    yield emulator, endpoint, key
    server.stop()


def agree(client: Client, kms_endpoint: str, key: str) -> Cipher:
    """Answer handshake and challenge as a client should; return its cipher."""
    kms = Emulator()
    kms.endpoint_url = kms_endpoint
    made = service(kms, "kms").generate_data_key(
        KeyId=key, NumberOfBytes=64, EncryptionContext=context(client)
    )
    cipher = Cipher(made["Plaintext"])
    respond(client, made["CiphertextBlob"])
    client.until(lambda: 1 in client.outputs)
    challenge = EncryptionChallenge.decode(client.outputs[1].payload).challenge
    proof = EncryptionChallenge(cipher.encrypt(cipher.decrypt(challenge))).encode()
    client.send(proof, PayloadType.ENCRYPTION_CHALLENGE_RESPONSE)
    return cipher


def test_input_and_output_are_encrypted(encrypted: tuple[Emulator, str, str]) -> None:
    emulator, kms_endpoint, key = encrypted
    client = Client(emulator, "Root-Shell")
    client.until(lambda: 0 in client.outputs)
    asked = json.loads(client.outputs[0].payload)["RequestedClientActions"][1]
    assert asked == {"ActionType": "KMSEncryption", "ActionParameters": {"KMSKeyId": key}}
    cipher = agree(client, kms_endpoint, key)
    client.until(lambda: 3 in client.outputs)
    complete = HandshakeComplete.decode(client.outputs[2].payload)
    assert complete.customer_message == "This session is encrypted using AWS KMS."
    assert cipher.decrypt(client.outputs[3].payload) == b"# "
    client.send(cipher.encrypt(b"echo s''ecret\n"))
    client.until(lambda: 4 in client.outputs)
    assert cipher.decrypt(client.outputs[4].payload).startswith(b"secret\n")
    client.close()


def test_a_data_key_of_another_session_ends_the_session(start: Start) -> None:
    emulator = start(kms_key="alias/sessions")
    client = Client(emulator, "Root-Shell")
    client.until(lambda: 0 in client.outputs)
    made = service(emulator, "kms").generate_data_key(
        KeyId="alias/sessions",
        NumberOfBytes=64,
        EncryptionContext=context(client) | {"aws:ssm:SessionId": "user-other"},
    )
    respond(client, made["CiphertextBlob"])
    assert "Fetching data key failed" in client.until_closed()


def test_a_wrong_answer_to_the_challenge_ends_the_session(start: Start) -> None:
    emulator = start(kms_key="alias/sessions")
    client = Client(emulator, "Root-Shell")
    client.until(lambda: 0 in client.outputs)
    made = service(emulator, "kms").generate_data_key(
        KeyId="alias/sessions", NumberOfBytes=64, EncryptionContext=context(client)
    )
    respond(client, made["CiphertextBlob"])
    client.until(lambda: 1 in client.outputs)
    wrong = EncryptionChallenge(Cipher(made["Plaintext"]).encrypt(b"guess")).encode()
    client.send(wrong, PayloadType.ENCRYPTION_CHALLENGE_RESPONSE)
    assert "does not match" in client.until_closed()


def test_a_client_that_cannot_encrypt_ends_the_session(start: Start) -> None:
    client = Client(start(kms_key="alias/sessions"), "Root-Shell")
    client.until(lambda: 0 in client.outputs)
    refusal = ProcessedAction(
        ActionType.KMS_ENCRYPTION, ActionStatus.UNSUPPORTED, None, "no such thing"
    )
    client.send(HandshakeResponse((refusal,)).encode(), PayloadType.HANDSHAKE_RESPONSE)
    assert client.until_closed() == (
        "KMSEncryption failed on client with status 3 error: no such thing"
    )


def test_a_message_for_customers_makes_shells_shake_hands(start: Start) -> None:
    client = Client(start(customer_message="Be kind."), "Root-Shell")
    client.shake_hands()
    client.expect(b"# ")
    assert HandshakeComplete.decode(client.outputs[1].payload).customer_message == "Be kind."
    client.close()
