"""The walk through markets and zones, and what a launch asks for."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from facts.aws import Aws, AwsError
from facts.ec2_image import Image
from facts.ec2_network import Place, places
from operations import ec2_launch
from operations.ec2_launch import Offer, Wish, launch, offers, pause_before, request, token, walk
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.samples import IMAGE

ZONES = [Place(f"subnet-{z}", f"us-east-1{z}", "vpc-1", 10) for z in "abcd"]


def wish(image: Image = IMAGE) -> Wish:
    return Wish(
        name="one",
        type="g5g.2xlarge",
        image=image,
        security_groups=(),
        instance_profile="vllm-g5g",
        volume_gib=150,
        shutdown="stop",
    )


def test_spot_walks_from_the_cheapest_zone_and_on_demand_in_order() -> None:
    prices = {"us-east-1a": 0.4, "us-east-1c": 0.2, "us-east-1b": 0.3}
    order = [
        (offer.market, offer.place.zone[-1], offer.round)
        for offer in offers(["spot", "on-demand"], ZONES, prices, rounds=2)
    ]
    assert order == [
        *(("spot", zone, 0) for zone in "cbad"),  # d has no price: last
        *(("spot", zone, 1) for zone in "cbad"),
        *(("on-demand", zone, 0) for zone in "abcd"),
        *(("on-demand", zone, 1) for zone in "abcd"),
    ]


def test_pauses_lie_between_rounds_and_double_up_to_two_minutes() -> None:
    tries = list(offers(["spot", "on-demand"], ZONES, {}, rounds=6))
    pauses = [pause_before(one, last) for last, one in pairwise(tries)]
    assert pause_before(tries[0], None) == 0
    assert [pause for pause in pauses if pause] == [15, 30, 60, 120, 120] * 2


def test_a_spot_request_is_one_time_and_a_fixed_one_keeps_its_shutdown_behaviour() -> None:
    spot: Mapping[str, Any] = request(wish(), Offer("spot", ZONES[0], 0), "t")
    assert spot["InstanceMarketOptions"]["SpotOptions"]["SpotInstanceType"] == "one-time"
    assert "InstanceInitiatedShutdownBehavior" not in spot
    fixed: Mapping[str, Any] = request(wish(), Offer("on-demand", ZONES[0], 0), "t")
    assert "InstanceMarketOptions" not in fixed
    assert fixed["InstanceInitiatedShutdownBehavior"] == "stop"
    for asked in (spot, fixed):
        assert asked["MetadataOptions"]["HttpTokens"] == "required"
        assert asked["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
        (volume,) = asked["BlockDeviceMappings"]
        assert volume["DeviceName"] == "/dev/sda1"
        assert volume["Ebs"]["Encrypted"] is True
        assert {"instance", "volume"} <= {t["ResourceType"] for t in asked["TagSpecifications"]}


def test_a_token_is_the_same_for_the_same_launch_alone() -> None:
    here, there = Offer("spot", ZONES[0], 0), Offer("spot", ZONES[1], 0)
    tokens = [
        token(wish(), here, ["i-1"], 0),
        token(wish(), there, ["i-1"], 0),
        token(wish(), here, ["i-1", "i-2"], 0),
        token(wish(), here, ["i-1"], 1),
        token(wish(), Offer("spot", ZONES[0], 1), ["i-1"], 0),
    ]
    assert len(set(tokens)) == len(tokens)
    assert token(wish(), here, ["i-2", "i-1"], 0) == token(wish(), here, ["i-1", "i-2"], 0)
    assert all(len(text) == 64 and text.isascii() for text in tokens)  # EC2's limit


@pytest.fixture
def real(cloud: Cloud, aws: Aws) -> list[Place]:
    """The default subnets of the zones that have G5g."""
    cloud.register_image(IMAGE.name)
    aws.iam.create_instance_profile(InstanceProfileName="vllm-g5g")
    return places(aws, subnets=(), zones=[place.zone for place in ZONES])


class Walk:
    """A walk whose sleeps are noted instead of slept."""

    def __init__(self, aws: Aws, cloud: Cloud, real: list[Place]) -> None:
        self.aws, self.cloud, self.real = aws, cloud, real
        self.slept: list[float] = []
        self.said: list[str] = []

    def __call__(self, *markets: Any, rounds: int = 2, known: tuple[str, ...] = ()) -> str:
        tries = offers(markets, self.real, {}, rounds)
        return walk(self.aws, wish(), tries, known, self.said.append, self.slept.append)

    def tried(self) -> list[str]:
        """Return market and zone letter of each RunInstances call."""
        zones = {place.subnet: place.zone[-1] for place in self.real}
        return [
            ("spot " if "InstanceMarketOptions.MarketType" in call.params else "fixed ")
            + zones[call.params["SubnetId"]]
            for call in self.cloud.calls
            if call.action == "RunInstances"
        ]


@pytest.fixture
def walking(aws: Aws, cloud: Cloud, real: list[Place]) -> Walk:
    return Walk(aws, cloud, real)


def test_no_room_in_the_first_three_zones_ends_in_the_fourth(walking: Walk, cloud: Cloud) -> None:
    cloud.faults.append(Fault("RunInstances", "InsufficientInstanceCapacity", times=3))

    id = walking("spot")

    assert walking.tried() == ["spot a", "spot b", "spot c", "spot d"]
    assert cloud.instance(id).subnet_id == walking.real[3].subnet
    assert walking.slept == []
    assert walking.said[0] == "no g5g.2xlarge spot in us-east-1a: InsufficientInstanceCapacity"


def test_rounds_pause_and_then_on_demand_is_tried(walking: Walk, cloud: Cloud) -> None:
    cloud.faults.append(Fault("RunInstances", "MaxSpotInstanceCountExceeded", when=_is_spot))

    walking("spot", "on-demand")

    assert walking.tried() == ["spot a", "spot b", "spot c", "spot d"] * 2 + ["fixed a"]
    assert walking.slept == [15]


def _is_spot(params: Mapping[str, Any]) -> bool:
    return "InstanceMarketOptions.MarketType" in params


def test_rounds_are_limited(walking: Walk, cloud: Cloud) -> None:
    cloud.faults.append(Fault("RunInstances", "InsufficientInstanceCapacity"))

    with pytest.raises(AwsError, match="no zone has room, the last was spot in us-east-1d"):
        walking("spot", rounds=3)

    assert len(walking.tried()) == 12
    assert walking.slept == [15, 30]


def test_a_zone_without_the_type_is_not_asked_again(walking: Walk, cloud: Cloud) -> None:
    first = walking.real[0].subnet
    cloud.faults += [
        Fault("RunInstances", "Unsupported", when=lambda params: params["SubnetId"] == first),
        Fault("RunInstances", "InsufficientInstanceCapacity", times=4),
    ]

    walking("on-demand")

    assert walking.tried() == [
        *("fixed a", "fixed b", "fixed c", "fixed d"),
        *("fixed b", "fixed c"),
    ]


def test_what_no_zone_mends_ends_the_walk(walking: Walk, cloud: Cloud) -> None:
    cloud.faults.append(
        Fault("RunInstances", "VcpuLimitExceeded", "You have requested more vCPU capacity")
    )

    with pytest.raises(AwsError, match=r"VcpuLimitExceeded: You have .* Ask for more vCPUs"):
        walking("on-demand")
    assert walking.tried() == ["fixed a"]


def test_a_lost_answer_does_not_make_a_second_instance(walking: Walk, cloud: Cloud) -> None:
    first = walking("on-demand")
    again = walking("on-demand")  # as a run that was killed before it saw the answer

    assert again == first
    assert len(cloud.ec2.reservations) == 1


def test_one_more_of_a_fleet_is_another_instance(walking: Walk, cloud: Cloud) -> None:
    first = walking("on-demand")
    second = walking("on-demand", known=(first,))

    assert second != first


def test_a_token_whose_instance_has_ended_makes_a_new_one(walking: Walk, cloud: Cloud) -> None:
    first = walking("on-demand")
    cloud.end(first, "terminated", "Client.UserInitiatedShutdown", "")
    second = walking("on-demand")  # an hour later: EC2 lists no instance, but knows the token

    assert second != first


def test_launches_that_all_end_are_not_repeated_for_ever(
    aws: Aws, cloud: Cloud, real: list[Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ec2_launch, "GENERATIONS", 3)
    offer = Offer("on-demand", real[0], 0)
    for _ in range(3):
        id = launch(aws, wish(), offer, [])
        cloud.end(id, "terminated", "Client.InternalError", "")

    with pytest.raises(AwsError, match="the last 3 launches of this very request have all ended"):
        launch(aws, wish(), offer, [])
