"""A cloud of its own for each test, and boto3 pointed at it."""

from collections.abc import Iterator
from functools import cache

import pytest
from botocore.loaders import JSONFileLoader
from botocore.retries import standard
from moto.moto_api._internal.models import moto_api_backend

from facts.aws import Aws
from tests.ec2.cloud import REGION, Cloud
from tests.ec2.provisioning import Provisioner, furnish

_load_file = cache(JSONFileLoader().load_file)


@pytest.fixture(autouse=True)
def models_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share botocore's service models between sessions; EC2's takes half a second to read."""
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda self, path: _load_file(path))


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A fresh account; the environment's credential chain leads to it."""
    # moto's 1,300 images, none of which is of use here, take a second to make.
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    moto_api_backend.reset()
    opened = Cloud()
    for name, value in {
        "AWS_ENDPOINT_URL": opened.url,
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "example",
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


@pytest.fixture
def provision(aws: Aws, cloud: Cloud, caplog: pytest.LogCaptureFixture) -> Provisioner:
    """provision.py in an account that has all it needs."""
    caplog.set_level("INFO", logger="pyinfra")
    furnish(aws, cloud)
    return Provisioner(caplog)
