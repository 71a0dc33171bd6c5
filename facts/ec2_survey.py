"""All that a plan for running instances rests on, asked once before anything changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from facts.aws import DENIED, Aws, AwsError
from facts.ec2 import Instance, Market, Volume, online, volumes
from facts.ec2_image import Image, baked_image, public_image
from facts.ec2_network import Findings, Group, Place, groups, judge_profile, offering_zones, places
from facts.ec2_price import latest, spot_history
from facts.ec2_quota import Kind, Quota, kinds, quotas
from fleet import Fleet


@dataclass(frozen=True)
class Survey:
    """What AWS has for a fleet: facts alone, no judgement."""

    kind: Kind
    image: Image
    places: Sequence[Place]
    offering: frozenset[str]  # zones that have the type
    groups: Sequence[Group]
    profile: Findings
    quotas: Mapping[Market, Quota]
    prices: Mapping[str, float]  # zone -> spot price in USD an hour
    volumes: Mapping[str, Volume]
    online: frozenset[str]  # instances that Systems Manager reaches
    warnings: tuple[str, ...]  # what may not be read, and is done without


def survey(aws: Aws, fleet: Fleet, found: Sequence[Instance]) -> Survey:
    """Ask AWS for all that bears on running this fleet. Nothing is written."""
    kind = kinds(aws, [fleet.type])[fleet.type]
    used, blind = quotas(aws, fleet.markets)
    prices, dear = _prices(aws, fleet)
    return Survey(
        kind=kind,
        image=_image(aws, fleet, kind.architecture),
        places=places(aws, subnets=fleet.subnets, zones=fleet.zones),
        offering=frozenset(offering_zones(aws, fleet.type)),
        groups=groups(aws, fleet.security_groups),
        profile=judge_profile(aws, fleet.instance_profile),
        quotas=used,
        prices=prices,
        volumes=volumes(aws, [entry.root_volume for entry in found if entry.root_volume]),
        online=online(aws, found),
        warnings=(*blind, *dear),
    )


def _image(aws: Aws, fleet: Fleet, architecture: str) -> Image:
    if fleet.baked is not None:
        return baked_image(aws, baked=fleet.baked, architecture=architecture)
    return public_image(
        aws,
        parameter=fleet.image_parameter.format(architecture=architecture),
        name=fleet.image_names["arm64" if architecture == "arm64" else "x86_64"],
    )


def _prices(aws: Aws, fleet: Fleet) -> tuple[Mapping[str, float], list[str]]:
    """Return zone -> spot price now; a warning instead where they may not be read."""
    now = datetime.now(UTC)
    try:
        return latest(spot_history(aws, [fleet.type], now, now), fleet.type), []
    except AwsError as error:
        if error.code not in DENIED:
            raise
        return {}, [str(error)]
