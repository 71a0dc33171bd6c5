"""Launching: what is asked of EC2, and the walk through markets and zones until it has room."""

import hashlib
import json
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from desired.fleet import MANAGED_BY
from facts.aws import Aws, AwsError
from facts.ec2 import Market
from facts.ec2_image import Image
from facts.ec2_network import Place
from operations.aws_command import Say

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import ResourceTypeType
    from mypy_boto3_ec2.type_defs import (
        BlockDeviceMappingTypeDef,
        InstanceMarketOptionsRequestTypeDef,
        InstanceMetadataOptionsRequestTypeDef,
        RunInstancesRequestTypeDef,
        TagSpecificationTypeDef,
        TagTypeDef,
    )

# "No room here, now": the next zone may have some, or this one a little later. That spot's own
# count is exceeded reads like a quota, but passes with time as requests are closed; its advice to
# try other zones is about on-demand [field report].
NO_ROOM = frozenset({"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded"})
# "Not here however often one asks": the zone has no such type, or the subnet no address.
NOT_HERE = frozenset({"Unsupported", "InsufficientFreeAddressesInSubnet"})

FIRST_PAUSE_S = 15.0  # after the first round through the zones; it doubles from there
LONGEST_PAUSE_S = 120.0
GENERATIONS = 20  # launches of the same request that may have ended within a token's lifetime


@dataclass(frozen=True)
class Wish:
    """Everything that a launch asks for, but market and place."""

    name: str
    type: str
    image: Image
    security_groups: tuple[str, ...]
    instance_profile: str
    volume_gib: int
    shutdown: Literal["stop", "terminate"]


@dataclass(frozen=True)
class Offer:
    """One thing to try: a market in a place, and how often it was tried before."""

    market: Market
    place: Place
    round: int


def offers(
    markets: Sequence[Market], places: Sequence[Place], prices: Mapping[str, float], rounds: int
) -> Iterator[Offer]:
    """Return what to try, in order: each market's rounds, each through all zones.

    `prices` are spot prices by zone in USD an hour; spot walks from the cheapest zone.
    """
    for market in markets:
        ordered = list(places)
        if market == "spot":
            ordered.sort(key=lambda place: prices.get(place.zone, float("inf")))
        for round_ in range(rounds):
            for place in ordered:
                yield Offer(market, place, round_)


def pause_before(offer: Offer, last: Offer | None) -> float:
    """Return how many seconds to wait between two tries: none within a round or a new market."""
    if last is None or offer.market != last.market or offer.round == last.round:
        return 0.0
    return float(min(FIRST_PAUSE_S * 2**last.round, LONGEST_PAUSE_S))


def request(wish: Wish, offer: Offer, token: str) -> "RunInstancesRequestTypeDef":
    """Return the RunInstances call for one instance."""
    asked: RunInstancesRequestTypeDef = {
        "ClientToken": token,
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": wish.image.id,
        "InstanceType": wish.type,  # type: ignore[typeddict-item]  # any string, the API says
        "SubnetId": offer.place.subnet,
        "IamInstanceProfile": {"Name": wish.instance_profile},
        "MetadataOptions": _METADATA,
        "BlockDeviceMappings": [_root_volume(wish)],
        "TagSpecifications": _tags(wish, offer.market),
    }
    if wish.security_groups:
        asked["SecurityGroupIds"] = list(wish.security_groups)
    if offer.market == "spot":
        asked["InstanceMarketOptions"] = _ONE_TIME
    else:  # a one-time spot instance takes no other behaviour than to terminate
        asked["InstanceInitiatedShutdownBehavior"] = wish.shutdown
    return asked


# Version 2 alone, and one hop: nothing behind a bridge on the host can ask for its role.
_METADATA: "InstanceMetadataOptionsRequestTypeDef" = {
    "HttpTokens": "required",
    "HttpPutResponseHopLimit": 1,
    "HttpEndpoint": "enabled",
}
_ONE_TIME: "InstanceMarketOptionsRequestTypeDef" = {
    "MarketType": "spot",
    "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
}


def _root_volume(wish: Wish) -> "BlockDeviceMappingTypeDef":
    return {
        "DeviceName": wish.image.root_device,
        "Ebs": {
            "VolumeSize": wish.volume_gib,
            "VolumeType": "gp3",
            "Encrypted": True,
            "DeleteOnTermination": True,
        },
    }


def _tags(wish: Wish, market: Market) -> "list[TagSpecificationTypeDef]":
    tags: list[TagTypeDef] = [
        {"Key": "ManagedBy", "Value": MANAGED_BY},
        {"Key": "Name", "Value": wish.name},
        {"Key": "Image", "Value": wish.image.source},
    ]
    kinds: list[ResourceTypeType] = ["instance", "volume"]
    if market == "spot":
        kinds.append("spot-instances-request")
    return [{"ResourceType": kind, "Tags": tags} for kind in kinds]


def token(wish: Wish, offer: Offer, known: Sequence[str], generation: int) -> str:
    """Return the ClientToken: the same for the same launch into the same state of the fleet.

    So a launch whose answer was lost, or whose run was cut off before it, is found again instead
    of made twice. `known` are the ids of all instances of the name, the ended ones too; once one
    more is among them the token is another.
    """
    facts = [request(wish, offer, ""), offer.round, sorted(known), generation]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def launch(aws: Aws, wish: Wish, offer: Offer, known: Sequence[str]) -> str:
    """Ask EC2 for one instance; return its id.

    A token stays valid for a day after its instance ended [AWS documentation], by when EC2 no
    longer lists the instance: an answer that has ended already is such a one, not a new launch.
    """
    for generation in range(GENERATIONS):
        asked = request(wish, offer, token(wish, offer, known, generation))
        with aws.asking(f"launch a {wish.type} ({offer.market}) in {offer.place.zone}"):
            (made,) = aws.ec2.run_instances(**asked)["Instances"]
        if made["State"]["Name"] not in {"shutting-down", "terminated"}:
            return made["InstanceId"]
    raise AwsError(
        f"[{aws.region}] cannot launch a {wish.type}: the last {GENERATIONS} launches of this "
        "very request have all ended. See why with `pyinfra inventory.py debug-inventory`."
    )


def walk(
    aws: Aws,
    wish: Wish,
    tries: Iterator[Offer],
    known: Sequence[str],
    say: Say,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Try one offer after the other until EC2 has room; return the new instance's id.

    Raises AwsError at once for what no other zone would mend, and when all tries are used up.
    """
    barred: set[tuple[Market, Place]] = set()
    why = "nothing was tried"
    for offer in _paced(tries, barred, say, sleep):
        made = _launch_if_room(aws, wish, offer, known)
        if isinstance(made, str):
            return made
        if made.code in NOT_HERE:
            barred.add((offer.market, offer.place))
        why = f"{offer.market} in {offer.place.zone}: {made.code}"
        say(f"no {wish.type} {why}")
    raise AwsError(
        f"[{aws.region}] cannot launch a {wish.type}: no zone has room, the last was {why}. "
        "Raise rounds, add zones, take another type or market, or try again later."
    )


def _paced(
    tries: Iterator[Offer],
    barred: Container[tuple[Market, Place]],
    say: Say,
    sleep: Callable[[float], None],
) -> Iterator[Offer]:
    """Yield the offers that are not barred by then, after a pause where a new round begins."""
    last: Offer | None = None
    for offer in tries:
        if (offer.market, offer.place) in barred:
            continue
        if pause := pause_before(offer, last):
            say(f"no room in any zone; round {offer.round + 1} in {pause:.0f} s")
            sleep(pause)
        last = offer
        yield offer


def _launch_if_room(aws: Aws, wish: Wish, offer: Offer, known: Sequence[str]) -> str | AwsError:
    """Return the new instance's id, or the error that says that there is no room for it."""
    try:
        return launch(aws, wish, offer, known)
    except AwsError as error:
        if error.code not in NO_ROOM | NOT_HERE:
            raise
        return error
