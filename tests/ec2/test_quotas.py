"""Types of instances, and how many of each an account may have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.aws import Aws, AwsError
from facts.ec2_hosts import accelerator
from facts.ec2_quota import Quota, counts, quotas, shortfall
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.provisioning import launch

FAMILIES = {
    "g5g.2xlarge": ("g5g", True),
    "g4dn.xlarge": ("g4dn", True),
    "g6e.xlarge": ("g6e", True),
    "gr6.4xlarge": ("gr6", True),
    "vt1.3xlarge": ("vt1", True),
    "p4d.24xlarge": ("p4d", False),
    "inf2.xlarge": ("inf2", False),
    "c7g.large": ("cpu", False),
    "m7i-flex.large": ("cpu", False),
    "u-6tb1.metal": ("cpu", False),
}


@pytest.mark.parametrize(("type_", "expected"), FAMILIES.items())
def test_families(type_: str, expected: tuple[str, bool]) -> None:
    assert (accelerator(type_), counts(type_)) == expected


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 500))
def test_the_number_to_ask_for_is_enough_and_the_least(limit: int, used: int, more: int) -> None:
    said = shortfall(Quota("spot", limit, used), more)
    assert bool(said) is (used + more > limit)
    if said:
        assert f"at least {used + more} in" in said
        assert shortfall(Quota("spot", used + more, used), more) == ""


def test_what_runs_counts_against_its_own_quota_whoever_runs_it(aws: Aws, cloud: Cloud) -> None:
    cloud.quotas |= {"L-DB2E81BA": 64, "L-3819A6DF": 16}
    launch(aws, tags={"ManagedBy": "somebody else"})
    launch(aws, InstanceType="g4dn.xlarge", InstanceMarketOptions={"MarketType": "spot"})
    launch(aws, InstanceType="c7g.large")
    (stopped,) = launch(aws)
    aws.ec2.stop_instances(InstanceIds=[stopped])

    answers, warnings = quotas(aws, ["spot", "on-demand"])

    assert answers == {"spot": Quota("spot", 16, 4), "on-demand": Quota("on-demand", 64, 8)}
    assert warnings == []


def test_an_open_spot_request_counts(aws: Aws, cloud: Cloud) -> None:
    cloud.quotas |= {"L-3819A6DF": 16}
    aws.ec2.request_spot_instances(
        InstanceCount=1,
        LaunchSpecification={"InstanceType": "g5g.2xlarge", "ImageId": "ami-0123456789abcdef0"},
    )
    for request in cloud.ec2.spot_instance_requests.values():
        request.state = "open"

    answers, _ = quotas(aws, ["spot"])

    assert answers["spot"].used >= 8


def test_a_type_that_does_not_exist_is_one_line(aws: Aws, cloud: Cloud) -> None:
    cloud.faults.append(Fault("DescribeInstanceTypes", "InvalidInstanceType", "g5g.tiny?"))
    launch(aws)
    with pytest.raises(AwsError, match=r"cannot look up g5g\.2xlarge: InvalidInstanceType"):
        quotas(aws, ["spot"])
