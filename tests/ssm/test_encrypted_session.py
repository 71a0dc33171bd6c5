"""A session that the account wants encrypted, with moto's KMS on both ends."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from pyinfra_ssm._errors import SSMError
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import Ending
from pyinfra_ssm.emulator import DEFAULT_ID
from tests.ssm.conftest import OPTIONS, Emulate, Host, account


@pytest.fixture(scope="module")
def kms() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def key(kms: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    client = boto3.client("kms", region_name="us-east-1", endpoint_url=kms)
    return client.create_key()["KeyMetadata"]["KeyId"]


def test_commands_run_in_an_encrypted_session(
    emulate: Emulate, kms: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = emulate(kms_key=key, kms_endpoint_url=kms)
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", kms)
    transport = SessionTransport(account(), DEFAULT_ID, OPTIONS)
    transport.open()
    host = Host(emulator, transport)
    try:
        assert host.run("cat; exit 3", stdin=bytes(range(256))) == (
            Ending(3),
            bytes(range(256)),
            b"",
        )
    finally:
        transport.close()


def test_a_key_that_may_not_be_used_is_named(
    emulate: Emulate, kms: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulate(kms_key="alias/not-there", kms_endpoint_url=kms)
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", kms)
    transport = SessionTransport(account(), DEFAULT_ID, OPTIONS)
    with pytest.raises(SSMError, match=r"kms:GenerateDataKey failed"):
        transport.open()
