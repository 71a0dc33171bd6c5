"""What is read from EC2: prices, quotas, images, networks, the groups of hardware."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.aws import Aws, AwsError
from facts.ec2 import instances, parse_instance
from facts.ec2_hosts import accelerator, age
from facts.ec2_image import baked_image, public_image
from facts.ec2_network import groups, judge_groups, judge_profile, places
from facts.ec2_price import Price, cost, parse_product
from facts.ec2_quota import Quota, counts, quotas, shortfall
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.provisioning import DLAMI, PARAMETER, bake
from tests.ec2.test_inventory import launch

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)

# --- prices


def test_cost_follows_the_price_as_it_changes() -> None:
    prices = [Price(BEGIN, 0.2), Price(BEGIN + timedelta(hours=3), 0.5)]
    since, until = BEGIN + timedelta(hours=1), BEGIN + timedelta(hours=5)
    assert cost(prices, since, until) == pytest.approx(2 * 0.2 + 2 * 0.5)


def test_before_the_first_price_the_first_one_is_taken() -> None:
    prices = [Price(BEGIN, 0.2)]
    assert cost(prices, BEGIN - timedelta(hours=5), BEGIN + timedelta(hours=5)) == pytest.approx(2)


hours = st.integers(0, 2000).map(lambda n: BEGIN + timedelta(hours=n))
histories = st.lists(st.builds(Price, hours, st.floats(0.01, 10)), min_size=1, max_size=8).map(
    lambda prices: sorted(prices, key=lambda price: price.since)
)


@given(histories, hours, hours)
def test_cost_lies_between_the_lowest_and_the_highest_price(
    prices: list[Price], one: datetime, other: datetime
) -> None:
    since, until = min(one, other), max(one, other)
    span = (until - since).total_seconds() / 3600
    low, high = min(p.usd for p in prices), max(p.usd for p in prices)
    assert low * span * 0.999 - 1e-9 <= cost(prices, since, until) <= high * span * 1.001 + 1e-9


@given(histories, hours, hours, hours)
def test_cost_of_two_parts_is_that_of_the_whole(
    prices: list[Price], one: datetime, two: datetime, three: datetime
) -> None:
    first, middle, last = sorted([one, two, three])
    parts = cost(prices, first, middle) + cost(prices, middle, last)
    assert parts == pytest.approx(cost(prices, first, last))


def test_a_product_of_the_price_list_is_read() -> None:
    # The layout of a real answer of GetProducts, less what is not read.
    hourly = {
        "unit": "Hrs",
        "description": "$0.556 per On Demand Linux g5g.2xlarge Instance Hour",
        "appliesTo": [],
        "pricePerUnit": {"USD": "0.5560000000"},
    }
    product = {
        "product": {"productFamily": "Compute Instance", "sku": "SKU"},
        "serviceCode": "AmazonEC2",
        "terms": {
            "OnDemand": {"SKU.JRTCKXETXF": {"priceDimensions": {"SKU.JRTCKXETXF.6YS6": hourly}}}
        },
    }
    assert parse_product(json.dumps(product)) == 0.556
    assert parse_product(json.dumps({"terms": {}})) is None


AGES = {0: "0 min", 59: "0 min", 600: "10 min", 3900: "1 h 5 min", 90000: "1 d 1 h", -5: "0 min"}


@pytest.mark.parametrize(("seconds", "text"), AGES.items())
def test_age(seconds: int, text: str) -> None:
    assert age(timedelta(seconds=seconds)) == text


# --- types and quotas

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


# --- images

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


# --- networks


def test_places_are_the_subnets_given_or_the_default_ones(aws: Aws, cloud: Cloud) -> None:
    default = places(aws, subnets=(), zones=())
    assert len({place.zone for place in default}) == len(default) >= 4
    assert places(aws, subnets=(), zones=["us-east-1b"]) == [
        place for place in default if place.zone == "us-east-1b"
    ]
    assert places(aws, subnets=[default[2].subnet], zones=()) == [default[2]]
    assert places(aws, subnets=["subnet-0123456789abcdef0"], zones=()) == []


def test_an_open_security_group_is_a_warning(aws: Aws, cloud: Cloud) -> None:
    (vpc,) = aws.ec2.describe_vpcs()["Vpcs"]
    made = aws.ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc["VpcId"])
    id = made["GroupId"]
    assert judge_groups(groups(aws, [id]), [id], {vpc["VpcId"]}).warnings == ()

    aws.ec2.authorize_security_group_ingress(
        GroupId=id, IpProtocol="tcp", FromPort=22, ToPort=22, CidrIp="0.0.0.0/0"
    )
    judged = judge_groups(groups(aws, [id]), [id], {vpc["VpcId"]})
    assert judged.faults == ()
    assert judged.warnings == (
        f"the security group {id} lets the whole internet in; no port is needed",
    )


def test_a_profile_without_a_role_is_a_fault(aws: Aws, cloud: Cloud) -> None:
    (fault,) = judge_profile(aws, "p").faults
    assert fault.startswith("there is no instance profile p")
    aws.iam.create_instance_profile(InstanceProfileName="p")
    assert judge_profile(aws, "p").faults == (
        "the instance profile p has no role: docs/iam/ has one",
    )


# --- instances


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
