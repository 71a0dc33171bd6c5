"""provision.py from end to end against a cloud on loopback."""

from typing import Any

import pytest

from facts.aws import Aws
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.provisioning import Provisioner, furnish

WRITES = {"RunInstances", "StartInstances", "StopInstances", "TerminateInstances"}


@pytest.fixture
def provision(aws: Aws, cloud: Cloud, caplog: pytest.LogCaptureFixture) -> Provisioner:
    """provision.py in an account that has all it needs."""
    caplog.set_level("INFO", logger="pyinfra")
    furnish(aws, cloud)
    return Provisioner(caplog)


def states(cloud: Cloud) -> dict[str, list[str]]:
    """Return state -> ids of all instances, whoever's."""
    found: dict[str, list[str]] = {}
    for reservation in cloud.ec2.reservations.values():
        for instance in reservation.instances:
            found.setdefault(instance._state.name, []).append(instance.id)
    return found


def writes(cloud: Cloud) -> list[str]:
    return [action for action in cloud.actions() if action in WRITES]


def test_a_dry_run_names_the_launch_and_writes_nothing(
    provision: Provisioner, cloud: Cloud
) -> None:
    ran = provision(dry=True)

    assert ran.planned
    assert not ran.failed
    assert "0 of 1 instances are there as wanted; launch 1 g5g.2xlarge" in ran.said
    assert '"All G and VT Spot Instance Requests" (L-3819A6DF): 0 of 64 vCPUs' in ran.said
    assert "on spot, USD an hour: us-east-1a" in ran.said
    assert writes(cloud) == []


def test_the_second_run_changes_nothing(provision: Provisioner, cloud: Cloud) -> None:
    assert provision().changed
    assert len(states(cloud)["running"]) == 1

    assert not provision().changed
    assert not provision(dry=True).planned
    assert writes(cloud) == ["RunInstances"]


def test_the_instance_is_as_the_knobs_have_it(
    provision: Provisioner, cloud: Cloud, aws: Aws
) -> None:
    provision(market="on-demand", volume_gib=200)

    (reservation,) = aws.ec2.describe_instances()["Reservations"]
    (made,) = reservation["Instances"]
    tags = {"ManagedBy": "vllm-g5g", "Name": "vllm-g5g"}
    assert tags.items() <= {tag["Key"]: tag["Value"] for tag in made["Tags"]}.items()
    assert made["MetadataOptions"]["HttpTokens"] == "required"
    assert made["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    (volume,) = aws.ec2.describe_volumes()["Volumes"]
    assert (volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (200, "gp3", True)
    assert tags.items() <= {tag["Key"]: tag["Value"] for tag in volume["Tags"]}.items()


def test_a_stopped_instance_is_started_not_launched_again(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision(market="on-demand")
    assert provision(market="on-demand", state="stopped").changed
    assert not provision(market="on-demand", state="stopped").changed
    assert provision(market="on-demand").changed

    assert writes(cloud) == ["RunInstances", "StopInstances", "StartInstances"]
    assert not provision(market="on-demand").changed


def test_one_time_spot_is_refused_a_stop_before_trying(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision(market="spot")
    ran = provision(state="stopped")

    assert ran.failed
    assert "a one-time spot instance cannot be stopped, only terminated" in ran.said
    assert "StopInstances" not in cloud.actions()


def test_terminating_wants_the_name_or_yes(provision: Provisioner, cloud: Cloud) -> None:
    provision()
    for refused in [
        provision(yes=False, state="absent"),
        provision(yes=False, state="absent", confirm="another"),
    ]:
        assert refused.failed
        assert "with all that was built and downloaded on it" in refused.said
        assert "--data confirm=vllm-g5g" in refused.said
    assert "TerminateInstances" not in cloud.actions()

    assert provision(yes=False, state="absent", confirm="vllm-g5g").changed
    assert states(cloud).keys() == {"terminated"}
    assert not provision(state="absent").changed


def test_yes_alone_terminates_what_the_data_says_is_absent(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    assert provision(state="absent").changed
    assert states(cloud).keys() == {"terminated"}


def test_two_instances_of_one_name_are_refused_until_said_which_number(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision(count=2)
    oldest, youngest = states(cloud)["running"]
    cloud.instance(youngest).launch_time = "2099-01-01T00:00:00.000Z"

    ran = provision(count=1)
    assert ran.failed
    assert "2 instances are called vllm-g5g, count is 1" in ran.said
    assert len(states(cloud)["running"]) == 2

    assert provision(count=1, confirm="vllm-g5g").changed
    assert states(cloud) == {"running": [oldest], "terminated": [youngest]}


def test_instances_of_others_are_never_touched(
    provision: Provisioner, cloud: Cloud, aws: Aws
) -> None:
    theirs = aws.ec2.run_instances(ImageId="ami-0123456789abcdef0", MinCount=1, MaxCount=1)[
        "Instances"
    ][0]["InstanceId"]
    named: Any = [{"Key": "Name", "Value": "vllm-g5g"}]  # our name, but not managed by us
    aws.ec2.create_tags(Resources=[theirs], Tags=named)
    provision()
    provision(state="absent")

    assert states(cloud)["running"] == [theirs]


def test_a_changed_type_is_told_and_left_alone_without_replace(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    ran = provision(type="g5g.xlarge", volume_gib=300)

    assert not ran.changed
    assert not ran.failed
    assert "type is g5g.2xlarge, wanted g5g.xlarge" in ran.said
    assert "volume_gib is 150, wanted 300" in ran.said
    assert "replace=true" in ran.said
    assert writes(cloud) == ["RunInstances"]


def test_replace_launches_the_new_one_before_it_terminates_the_old(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    (old,) = states(cloud)["running"]

    assert provision(type="g5g.xlarge", replace=True).changed

    assert writes(cloud) == ["RunInstances", "RunInstances", "TerminateInstances"]
    assert states(cloud)["terminated"] == [old]
    assert not provision(type="g5g.xlarge", replace=True).changed


def test_a_replacement_that_finds_no_room_leaves_the_old_one(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    cloud.faults.append(Fault("RunInstances", "InsufficientInstanceCapacity"))

    ran = provision(type="g5g.xlarge", replace=True, rounds=1)

    assert ran.failed
    assert "no zone has room" in ran.said
    assert states(cloud).keys() == {"running"}


def test_a_quota_too_small_is_refused_before_the_call(provision: Provisioner, cloud: Cloud) -> None:
    cloud.quotas |= {"L-DB2E81BA": 4, "L-3819A6DF": 0}

    ran = provision(dry=True)

    assert ran.failed
    for market, limit in (("L-3819A6DF", 0), ("L-DB2E81BA", 4)):
        assert f"({market}) allows {limit} vCPUs, 0 are in use and 8 more are needed" in ran.said
    assert "ask for at least 8 in Service Quotas" in ran.said
    assert provision().failed
    assert writes(cloud) == []


def test_a_spot_quota_of_zero_leaves_on_demand(
    provision: Provisioner, cloud: Cloud, aws: Aws
) -> None:
    cloud.quotas["L-3819A6DF"] = 0

    assert provision().changed

    (call,) = [call for call in cloud.calls if call.action == "RunInstances"]
    assert not [key for key in call.params if key.startswith("InstanceMarketOptions")]


def test_quotas_that_may_not_be_read_are_a_warning(provision: Provisioner, cloud: Cloud) -> None:
    cloud.faults.append(Fault("GetServiceQuota", "AccessDeniedException", "Not you."))

    ran = provision()

    assert ran.changed
    assert "cannot read the quota" in ran.said
    assert "Allow GetServiceQuota" in ran.said


FIRST_RUN = {
    # action -> whether a run goes on without it
    "DescribeInstances": False,
    "DescribeInstanceTypes": False,
    "DescribeSpotInstanceRequests": True,
    "GetServiceQuota": True,
    "DescribeSpotPriceHistory": True,
    "GetParameter": False,
    "DescribeImages": False,
    "DescribeSubnets": False,
    "DescribeInstanceTypeOfferings": False,
    "GetInstanceProfile": True,
    "RunInstances": False,
    "DescribeInstanceInformation": False,
}


def test_the_table_of_calls_is_whole(provision: Provisioner, cloud: Cloud) -> None:
    provision()

    assert set(cloud.actions()) == FIRST_RUN.keys()


@pytest.mark.parametrize(("action", "goes_on"), FIRST_RUN.items(), ids=FIRST_RUN)
def test_a_denied_call_is_one_line_that_names_it(
    provision: Provisioner, cloud: Cloud, action: str, goes_on: bool
) -> None:
    code = "UnauthorizedOperation" if action in EC2_ACTIONS else "AccessDeniedException"
    blob = "You are not authorized. Encoded authorization failure message: QmxvYg"
    cloud.faults.append(Fault(action, code, blob))

    ran = provision()

    lines = [line for line in ran.said.splitlines() if f"Allow {action} to" in line]
    assert lines
    assert f"{code}: You are not authorized. Allow {action}" in lines[0]
    assert "docs/iam/operator.json" in lines[0]
    assert "Traceback" not in ran.said
    assert ran.failed is not goes_on
    assert ran.changed is goes_on


EC2_ACTIONS = {action for action in FIRST_RUN if action.startswith(("Describe", "Run"))} - {
    "DescribeInstanceInformation"
}


def test_expired_credentials_are_one_line(provision: Provisioner, cloud: Cloud) -> None:
    cloud.faults.append(Fault("DescribeInstances", "ExpiredToken", "The token is expired"))

    ran = provision()

    assert ran.failed
    assert "ExpiredToken: The token is expired. Renew the credentials" in ran.said
    assert cloud.actions() == ["DescribeInstances"]


def test_credentials_that_expire_in_the_middle_are_one_line(
    provision: Provisioner, cloud: Cloud
) -> None:
    cloud.faults.append(Fault("RunInstances", "RequestExpired", "Request has expired."))

    ran = provision()

    assert ran.failed
    assert "cannot launch a g5g.2xlarge (spot) in us-east-1a: RequestExpired" in ran.said
    assert "Traceback" not in ran.said


def test_throttling_is_waited_out(provision: Provisioner, cloud: Cloud) -> None:
    cloud.faults += [
        Fault(action, "RequestLimitExceeded", times=3)
        for action in ("DescribeInstances", "RunInstances")
    ]

    assert provision().changed
    assert len(states(cloud)["running"]) == 1


def test_an_instance_that_ends_at_once_is_told_with_ec2s_reason(
    provision: Provisioner, cloud: Cloud
) -> None:
    reason = "Client.VolumeLimitExceeded: Volume limit exceeded"
    cloud.on_launch.append(
        lambda instance: cloud.end(instance.id, "terminated", "Client.VolumeLimitExceeded", reason)
    )

    ran = provision()

    assert ran.failed
    assert f"has ended: {reason}. Ask for more gp3 storage" in ran.said


def test_a_run_cut_off_after_the_launch_finds_its_instance_again(
    provision: Provisioner, cloud: Cloud
) -> None:
    cloud.faults.append(Fault("DescribeInstances", "ExpiredToken", when=_by_id, times=1))
    assert provision().failed
    assert len(states(cloud)["running"]) == 1

    assert not provision().changed
    assert len(states(cloud)["running"]) == 1


def _by_id(params: object) -> bool:
    return isinstance(params, dict) and "InstanceId.1" in params


@pytest.mark.parametrize(
    ("data", "words"),
    {
        "unknown": ({"cuont": 2}, "--data cuont: not a knob of provision.py"),
        "negative": ({"count": -1}, "count: Input should be greater than or equal to 0 (found -1)"),
        "state": ({"state": "off"}, "state: Input should be 'running', 'stopped' or 'absent'"),
        "subnet": ({"subnets": "a,b"}, "subnets.0: String should match pattern"),
        "both": ({"subnets": "subnet-0123456789abcdef0", "zones": "us-east-1a"}, "both set"),
    }.values(),
)
def test_a_bad_knob_is_refused_before_aws_is_asked(
    provision: Provisioner, cloud: Cloud, data: dict[str, Any], words: str
) -> None:
    ran = provision(**data)

    assert ran.failed
    assert words in ran.said
    assert cloud.calls == []
