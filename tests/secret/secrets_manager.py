"""moto's Secrets Manager on loopback, with secrets in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

REGION = "us-west-2"


@dataclass(frozen=True)
class SecretsManager:
    """Where it answers, and boto3's client of it."""

    url: str
    client: Any


@contextmanager
def secrets_manager(secrets: Mapping[str, str]) -> Iterator[SecretsManager]:
    """Serve the secrets, text by name, while the block lasts."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    try:
        url = "http://{}:{}".format(*moto.get_host_and_port())
        client = boto3.client(
            "secretsmanager",
            region_name=REGION,
            endpoint_url=url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        for name, text in secrets.items():
            client.create_secret(Name=name, SecretString=text)
        yield SecretsManager(url, client)
    finally:
        moto.stop()
