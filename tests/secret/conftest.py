"""An instance with a role, and a Secrets Manager that the token script asks."""

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from files.token import fetch_token
from tests.secret.metadata import metadata_service
from tests.secret.secrets_manager import REGION, SecretsManager, secrets_manager

NAME = "hf/token"
TOKEN = "hf_Example0123456789"
UNREACHABLE = "http://127.0.0.1:9"  # discard; nobody listens there


@pytest.fixture(scope="session")
def manager() -> Iterator[SecretsManager]:
    with secrets_manager({}) as manager:
        yield manager


@pytest.fixture
def vault(manager: SecretsManager, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The client of a Secrets Manager that has nothing in it; the script asks there too."""
    for found in manager.client.list_secrets(IncludePlannedDeletion=True)["SecretList"]:
        manager.client.delete_secret(SecretId=found["ARN"], ForceDeleteWithoutRecovery=True)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", manager.url)
    return manager.client


@pytest.fixture
def host(tmp_path, monkeypatch) -> Iterator[SimpleNamespace]:
    """An instance with a role; `fetch` runs the script and returns its exit status."""
    output = tmp_path / "run" / "token.env"
    slept: list[float] = []

    def fetch(*more: str) -> int:
        words = ["--region", REGION, "--secret-id", NAME, "--output", str(output), *more]
        return fetch_token.main(words, slept.append)

    mask = os.umask(0o022)
    with metadata_service() as metadata:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
        yield SimpleNamespace(metadata=metadata, output=output, fetch=fetch, slept=slept)
    os.umask(mask)


def refused(host: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> str:
    """Fetch, which must fail; return the one line that says why."""
    assert host.fetch() == 1
    assert not host.output.exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("no token: ")
    return line
