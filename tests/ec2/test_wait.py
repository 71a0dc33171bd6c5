"""Waiting for instances, on a clock that a test moves."""

from typing import Any

import pytest

from facts.aws import Aws, AwsError
from facts.ec2 import Agent
from facts.ec2_diagnosis import Surroundings, causes
from operations import ec2_wait
from operations.ec2_wait import EVERY_S, poll, until_online, until_state
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.hand import Hand
from tests.ec2.provisioning import launch
from tests.ec2.samples import instance


@pytest.fixture
def hand() -> Hand:
    return Hand()


def test_poll_tells_each_change_and_every_half_minute(hand: Hand) -> None:
    def look() -> str:
        return "a boots" if hand.time < 70 else "a registers" if hand.time < 80 else ""

    assert poll(look, 600, hand.clock, hand.said.append) == ""
    assert hand.said == [
        "a boots (0 s of 600 s)",
        "a boots (30 s of 600 s)",
        "a boots (60 s of 600 s)",
        "a registers (70 s of 600 s)",
    ]


def test_poll_ends_at_the_limit_with_what_is_left(hand: Hand) -> None:
    assert poll(lambda: "a boots", 60, hand.clock, hand.said.append) == "a boots"
    assert hand.time == 60


def test_the_agent_is_waited_for(aws: Aws, cloud: Cloud, hand: Hand) -> None:
    (id,) = launch(aws)
    cloud.all_online = False
    hand.at[40] = lambda: cloud.pings.update({id: "Online"})

    until_online(aws, [id], 600, hand.clock, hand.said.append)

    assert hand.time == 40
    assert hand.said[0] == f"{id} runs, its agent is not online yet (0 s of 600 s)"


def test_an_instance_that_is_not_listed_yet_is_waited_for(
    aws: Aws, cloud: Cloud, hand: Hand
) -> None:
    (id,) = launch(aws)
    cloud.faults.append(Fault("DescribeInstances", "InvalidInstanceID.NotFound", times=2))

    until_state(aws, [id], "running", hand.clock, hand.said.append)

    assert hand.time == 2 * EVERY_S
    assert hand.said == [f"{id} is not listed yet (0 s of 900 s)"]


def test_throttling_does_not_end_the_wait(aws: Aws, cloud: Cloud, hand: Hand) -> None:
    (id,) = launch(aws)
    # Two looks, each of which botocore repeats five times.
    cloud.faults.append(Fault("DescribeInstances", "RequestLimitExceeded", times=12))

    until_online(aws, [id], 600, hand.clock, hand.said.append)

    assert hand.said == ["AWS answers RequestLimitExceeded (0 s of 600 s)"]
    assert hand.time == 2 * EVERY_S


def test_a_spot_interruption_while_waiting_is_told(aws: Aws, cloud: Cloud, hand: Hand) -> None:
    (id,) = launch(aws, InstanceMarketOptions={"MarketType": "spot"})
    cloud.all_online = False
    words = "Server.SpotInstanceTermination: Spot instance termination"
    hand.at[20] = lambda: cloud.end(id, "shutting-down", "Server.SpotInstanceTermination", words)

    with pytest.raises(AwsError, match=rf"{id} \(one\) has ended: {words}\. Spot took it back"):
        until_online(aws, [id], 600, hand.clock, hand.said.append)
    assert hand.time == 20


def test_a_stop_that_never_ends_says_so(
    aws: Aws, cloud: Cloud, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ec2_wait, "SETTLE_WITHIN_S", 30.0)
    (id,) = launch(aws)

    with pytest.raises(AwsError, match=rf"after 30 s {id} is running"):
        until_state(aws, [id], "stopped", hand.clock, hand.said.append)


def test_an_agent_that_never_comes_is_diagnosed(aws: Aws, cloud: Cloud, hand: Hand) -> None:
    (id,) = launch(aws)
    cloud.all_online = False

    with pytest.raises(AwsError) as raised:
        until_online(aws, [id], 120, hand.clock, hand.said.append)

    message = str(raised.value)
    assert "after 120 s" in message
    assert f"{id}: it has no instance profile" in message
    assert "no default route, and its VPC no endpoint for ssm, ssmmessages" in message
    assert hand.time == 120


def test_routes_and_endpoints_are_read_from_ec2(aws: Aws, cloud: Cloud, hand: Hand) -> None:
    (id,) = launch(aws)
    cloud.pings[id] = "ConnectionLost"
    (instance_,) = aws.ec2.describe_instances()["Reservations"][0]["Instances"]
    vpc = instance_["VpcId"]
    gateway = aws.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    aws.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    (table,) = aws.ec2.describe_route_tables()["RouteTables"]
    aws.ec2.create_route(
        RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway
    )
    aws.ec2.associate_iam_instance_profile(
        InstanceId=id,
        IamInstanceProfile={
            "Name": aws.iam.create_instance_profile(InstanceProfileName="p")["InstanceProfile"][
                "InstanceProfileName"
            ]
        },
    )

    with pytest.raises(AwsError, match="its agent was there and is ConnectionLost"):
        until_online(aws, [id], 60, hand.clock, hand.said.append)


ROUTED = Surroundings(internet="nat-1", endpoints=frozenset(), checks="ok")
CAUSES = {
    "no profile": ({"profile": ""}, None, ROUTED, "it has no instance profile"),
    "no route": ({}, None, Surroundings("", frozenset(), "ok"), "no endpoint for ssm, ssmmessages"),
    "one endpoint lacks": (
        {},
        None,
        Surroundings("", frozenset({"ssm"}), "ok"),
        "no endpoint for ssmmessages",
    ),
    "endpoints will do": (
        {"public": False},
        None,
        Surroundings("", frozenset({"ssm", "ssmmessages"}), "ok"),
        "profile and route look right",
    ),
    "no address": (
        {"public": False},
        None,
        Surroundings("igw-1", frozenset(), "ok"),
        "needs a public address; it has none",
    ),
    "impaired": ({}, None, Surroundings("nat-1", frozenset(), "impaired"), "status checks"),
    "never there": ({}, None, ROUTED, "the agent did not start"),
    "was there": ({}, Agent("ConnectionLost", "3.3", "Ubuntu"), ROUTED, "is ConnectionLost"),
}


@pytest.mark.parametrize(("changes", "agent", "around", "words"), CAUSES.values(), ids=CAUSES)
def test_causes(
    changes: dict[str, Any], agent: Agent | None, around: Surroundings, words: str
) -> None:
    (first, *_) = causes(instance(1, **changes), agent, around)
    assert words in first
