from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from pyinfra_ssm.emulator import DEFAULT_ID, Emulator, Instance
from pyinfra_ssm.emulator.ec2 import matches, parse_filters
from tests.ssm.emulator.client import service

INSTANCE = Instance(tags={"Role": "inference", "Team": ""}, instance_type="g5g.xlarge")
FILTERS: dict[str, tuple[dict[str, list[str]], bool]] = {
    "none": ({}, True),
    "tag": ({"tag:Role": ["inference"]}, True),
    "other tag": ({"tag:Role": ["build"]}, False),
    "one of several values": ({"tag:Role": ["build", "inference"]}, True),
    "tag that is not there": ({"tag:Owner": ["*"]}, False),
    "empty tag": ({"tag:Team": [""]}, True),
    "tag key": ({"tag-key": ["Team"]}, True),
    "all filters must pass": ({"tag:Role": ["inference"], "instance-type": ["m7g.*"]}, False),
    "wildcards": ({"instance-type": ["g5g.*"], "tag:Role": ["infer?nce"]}, True),
    "a dot is a dot": ({"instance-type": ["g5gxxlarge"]}, False),
}


@pytest.mark.parametrize(("filters", "passes"), FILTERS.values(), ids=FILTERS)
def test_filters(filters: dict[str, list[str]], passes: bool) -> None:
    assert matches(INSTANCE, filters) is passes


def test_a_query_is_parsed_by_its_numbers() -> None:
    form = {
        "Filter.1.Name": "tag:Role",
        "Filter.1.Value.1": "a",
        "Filter.1.Value.2": "b",
        "Filter.2.Name": "tag-key",
        "Filter.2.Value.1": "c",
        "Filter.11.Name": "image-id",
        "Filter.11.Value.1": "d",
    }
    assert parse_filters(form) == {"tag:Role": ["a", "b"], "tag-key": ["c"], "image-id": ["d"]}


def _found(pages: Any) -> list[str]:
    return [
        instance["InstanceId"]
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    ]


def test_boto3_finds_running_instances_by_tag(shared: Emulator) -> None:
    ec2 = service(shared, "ec2")
    filters = [
        {"Name": "tag:Role", "Values": ["inference"]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    answer = ec2.describe_instances(Filters=filters)
    assert _found([answer]) == [DEFAULT_ID]
    instance = answer["Reservations"][0]["Instances"][0]
    assert instance["State"] == {"Code": 16, "Name": "running"}
    assert instance["Tags"] == [{"Key": "Role", "Value": "inference"}]
    assert instance["InstanceType"] == "g5g.xlarge"


def test_long_lists_come_in_pages(start: Callable[..., Emulator]) -> None:
    ec2 = service(start(page_size=1), "ec2")
    pages = list(ec2.get_paginator("describe_instances").paginate())
    assert [len(_found([page])) for page in pages] == [1, 1, 1]
    assert len(set(_found(pages))) == 3


def test_errors_have_the_names_of_ec2(start: Callable[..., Emulator]) -> None:
    emulator = start(denied=["DescribeInstances"])
    ec2 = service(emulator, "ec2")
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        ec2.describe_instances()
    emulator.set_faults(throttle_first=1, denied=[])
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        ec2.describe_instances()
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        ec2.describe_instances(InstanceIds=["i-ffffffffffffffff0"])
