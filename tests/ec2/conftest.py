"""A cloud of its own for each test, and boto3 pointed at it."""

from collections.abc import Iterator
from typing import Any

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


@pytest.fixture
def image(aws: Aws, cloud: Cloud) -> str:
    """An ARM64 image with the driver, named by the public parameter; returns its id."""
    return register_image(aws, cloud, "Deep Learning ARM64 AMI OSS Nvidia Driver GPU PyTorch 2.12")


def register_image(aws: Aws, cloud: Cloud, name: str, **changes: Any) -> str:
    """Make an image that looks like one of Amazon's."""
    asked: dict[str, Any] = {
        "Name": name,
        "Architecture": "arm64",
        "RootDeviceName": "/dev/sda1",
        "VirtualizationType": "hvm",
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 60}}],
    }
    id = aws.ec2.register_image(**asked | changes)["ImageId"]
    made = cloud.ec2.amis[id]
    made.owner_id, made.image_owner_alias = "898082745236", "amazon"
    return id
