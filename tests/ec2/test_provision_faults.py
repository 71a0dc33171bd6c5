"""provision.py where AWS or the knobs stand in the way, against a cloud on loopback."""

from typing import Any

import pytest

from facts.aws import Aws
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.provisioning import DLAMI, PARAMETER, Provisioner


def test_a_quota_too_small_is_refused_before_the_call(provision: Provisioner, cloud: Cloud) -> None:
    cloud.quotas |= {"L-DB2E81BA": 4, "L-3819A6DF": 0}

    ran = provision(dry=True)

    assert ran.failed
    for market, limit in (("L-3819A6DF", 0), ("L-DB2E81BA", 4)):
        assert f"({market}) allows {limit} vCPUs, 0 are in use and 8 more are needed" in ran.said
    assert "ask for at least 8 in Service Quotas" in ran.said
    assert provision().failed
    assert cloud.writes() == []


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


def test_an_x86_type_gets_the_x86_image(provision: Provisioner, cloud: Cloud) -> None:
    image = cloud.register_image(DLAMI.replace("ARM64 ", ""), "x86_64")
    cloud.put_parameter(PARAMETER.replace("arm64", "x86_64"), image)

    assert provision(type="g4dn.xlarge").changed

    (call,) = [call for call in cloud.calls if call.action == "RunInstances"]
    assert call.params["ImageId"] == image


def test_a_region_without_the_quota_is_a_warning(provision: Provisioner, cloud: Cloud) -> None:
    cloud.quotas.clear()

    ran = provision()

    assert ran.changed
    assert "cannot read the quota" in ran.said


FIRST_RUN = {
    # action -> whether a run goes on without it
    "DescribeInstances": False,
    "DescribeInstanceTypes": False,
    "DescribeSpotInstanceRequests": True,
    "GetServiceQuota": True,
    "DescribeSpotPriceHistory": True,
    "GetProducts": True,
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
    assert len(cloud.states()["running"]) == 1


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
    assert len(cloud.states()["running"]) == 1

    assert not provision().changed
    assert len(cloud.states()["running"]) == 1


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
