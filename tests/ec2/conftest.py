"""A cloud of its own for each test, and boto3 pointed at it."""

from collections.abc import Iterator

import pytest
from botocore.retries import standard
from moto.moto_api._internal.models import moto_api_backend

from facts.aws import Aws
from tests.ec2.cloud import REGION, Cloud


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A fresh account; the environment's credential chain leads to it."""
    moto_api_backend.reset()
    opened = Cloud()
    for name, value in {
        "AWS_ENDPOINT_URL": opened.url,
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "example",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    # botocore's own pause between two tries; its length is the library's business.
    monkeypatch.setattr(standard.ExponentialBackoff, "delay_amount", lambda self, context: 0)
    yield opened
    opened.close()


@pytest.fixture
def aws(cloud: Cloud) -> Aws:
    return Aws()
