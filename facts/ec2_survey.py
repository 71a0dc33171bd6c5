"""All that a plan for running instances rests on, asked once before anything changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from desired.fleet import Fleet
from facts.aws import Aws
from facts.ec2 import Instance, Market, Volume, online, volumes
from facts.ec2_image import Image, baked_image, public_image
from facts.ec2_network import Findings, Group, Place, groups, judge_profile, offering_zones, places
from facts.ec2_price import latest, prices
from facts.ec2_quota import Kind, Quota, kinds, quotas


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
    spot_usd: Mapping[str, float]  # by zone, an hour, now
    fixed_usd: float | None  # on demand, an hour
    volumes: Mapping[str, Volume]
    online: frozenset[str]  # instances that Systems Manager reaches
    warnings: tuple[str, ...]  # what may not be read, and is done without


def survey(aws: Aws, fleet: Fleet, found: Sequence[Instance]) -> Survey:
    """Ask AWS for all that bears on running this fleet. Nothing is written."""
    kind = kinds(aws, [fleet.type])[fleet.type]
    used, blind = quotas(aws, fleet.markets)
    now = datetime.now(UTC)
    spot, fixed = ([fleet.type] if m in fleet.markets else [] for m in ("spot", "on-demand"))
    known = prices(aws, spot, fixed, now, now)
    return Survey(
        kind=kind,
        image=_image(aws, fleet, kind.architecture),
        places=places(aws, subnets=fleet.subnets, zones=fleet.zones),
        offering=frozenset(offering_zones(aws, fleet.type)),
        groups=groups(aws, fleet.security_groups),
        profile=judge_profile(aws, fleet.instance_profile),
        quotas=used,
        spot_usd=latest(known.spot, fleet.type),
        fixed_usd=known.fixed.get(fleet.type),
        volumes=volumes(aws, [entry.root_volume for entry in found if entry.root_volume]),
        online=online(aws, found),
        warnings=(*blind, *known.warnings),
    )


def _image(aws: Aws, fleet: Fleet, architecture: str) -> Image:
    if fleet.baked is not None:
        return baked_image(aws, baked=fleet.baked, architecture=architecture)
    return public_image(
        aws,
        parameter=fleet.image_parameter.replace("{architecture}", architecture),
        name=fleet.image_names["arm64" if architecture == "arm64" else "x86_64"],
    )
