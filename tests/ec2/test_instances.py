"""Instances, as EC2 tells them."""

from datetime import UTC, datetime

from facts.aws import Aws
from facts.ec2 import instances, parse_instance
from tests.ec2.cloud import Cloud
from tests.ec2.provisioning import launch

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def test_an_instance_is_read_with_what_ec2_leaves_out() -> None:
    least = parse_instance(
        {
            "InstanceId": "i-1",
            "InstanceType": "g5g.xlarge",
            "State": {"Name": "terminated", "Code": 48},
            "LaunchTime": BEGIN,
            "StateReason": {"Code": "Client.InternalError", "Message": "Client error on launch"},
        }
    )
    assert least.reason == "Client.InternalError: Client error on launch"
    assert (least.market, least.name, least.root_volume, least.public) == (
        "on-demand",
        "",
        "",
        False,
    )


def test_instances_of_a_name_are_sorted_by_age(aws: Aws, cloud: Cloud) -> None:
    (young,) = launch(aws)
    (old,) = launch(aws)
    launch(aws, tags={"Name": "two"})
    cloud.instance(old).launch_time = "2020-01-01T00:00:00.000Z"

    assert [entry.id for entry in instances(aws, name="one")] == [old, young]
    assert len(instances(aws)) == 3
