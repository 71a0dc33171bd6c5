"""Which image an instance is made from."""

from datetime import datetime

import pytest

from facts.aws import Aws, AwsError
from facts.ec2_image import baked_image, public_image
from tests.ec2.cloud import Cloud
from tests.ec2.provisioning import DLAMI, PARAMETER, bake

NAME = "Deep Learning ARM64 AMI OSS Nvidia Driver GPU PyTorch 2.12 (Ubuntu 24.04) *"


def test_the_parameter_names_the_image(aws: Aws, cloud: Cloud) -> None:
    wanted = cloud.register_image(DLAMI)
    cloud.register_image(DLAMI + "2")
    cloud.put_parameter(PARAMETER, wanted)

    found = public_image(aws, parameter=PARAMETER, name=NAME)

    assert (found.id, found.architecture, found.source) == (wanted, "arm64", PARAMETER)


def test_without_the_parameter_the_newest_of_the_name_is_taken(aws: Aws, cloud: Cloud) -> None:
    old = cloud.register_image(DLAMI)
    new = cloud.register_image(DLAMI + "2")
    cloud.register_image("Deep Learning ARM64 AMI (Ubuntu 24.04)")  # no driver: not matched
    cloud.ec2.amis[old].creation_date = datetime(2026, 1, 1)

    assert public_image(aws, parameter=PARAMETER, name=NAME).id == new


def test_a_name_that_somebody_else_took_is_not_trusted(aws: Aws, cloud: Cloud) -> None:
    cloud.register_image(DLAMI, owner="somebody")
    with pytest.raises(AwsError, match="no image of Amazon's called"):
        public_image(aws, parameter=PARAMETER, name=NAME)


def test_a_parameter_to_an_image_that_is_gone_is_one_line(aws: Aws, cloud: Cloud) -> None:
    cloud.put_parameter(PARAMETER, "ami-0123456789abcdef0")
    with pytest.raises(AwsError, match="there is no image ami-0123456789abcdef0, which the param"):
        public_image(aws, parameter=PARAMETER, name=NAME)


def test_a_baked_image_is_found_by_its_build_or_as_the_latest(aws: Aws, cloud: Cloud) -> None:
    one = bake(aws, cloud, "1111111122222222")
    two = bake(aws, cloud, "22222222")
    bake(aws, cloud, "33333333", "x86_64")
    cloud.ec2.amis[one].creation_date = datetime(2026, 1, 1)

    assert baked_image(aws, baked="latest", architecture="arm64").id == two
    found = baked_image(aws, baked="11111111", architecture="arm64")
    assert (found.id, found.source) == (one, "build:1111111122222222")
    with pytest.raises(AwsError, match="none of ours is for x86_64 and build 22222222"):
        baked_image(aws, baked="22222222", architecture="x86_64")
