"""What is said before anything is planned: what was found, and what it costs."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from desired.fleet import Fleet
from facts.ec2 import Instance
from facts.ec2_hosts import describe
from facts.ec2_network import judge_groups
from facts.ec2_price import Prices
from facts.ec2_survey import Survey
from operations.ec2_plan import changes


def tell_found(
    region: str, name: str, found: Sequence[Instance], known: Prices, now: datetime
) -> list[str]:
    """Return a line for each instance of the name, the ended ones with EC2's reason."""
    if not found:
        return [f"no instance in {region} is called {name}"]
    return [
        f"{entry.id} {describe(entry, known, now)}"
        if entry.state == "running"
        else f"{entry.id} {entry.type} {entry.market} is {entry.state} {entry.reason}".rstrip()
        for entry in found
    ]


def tell_survey(seen: Survey, fleet: Fleet) -> list[str]:
    """Return the quotas and what is in use of them, the image, and the spot prices."""
    lines = [f"quota {quota}" for quota in seen.quotas.values()]
    lines.append(f"image {seen.image.id}, {seen.image.name}, {seen.image.created}")
    if "spot" in fleet.markets and seen.spot_usd:
        lines.append(f"{fleet.type} on spot, USD an hour: {_by_zone(seen.spot_usd)}")
    if "on-demand" in fleet.markets and seen.fixed_usd is not None:
        lines.append(f"{fleet.type} on demand, USD an hour: {seen.fixed_usd:.4f}")
    return lines


def warn(found: Sequence[Instance], seen: Survey, fleet: Fleet) -> list[str]:
    """Return what is worth knowing and stops nothing."""
    groups = judge_groups(seen.groups, fleet.security_groups, {place.vpc for place in seen.places})
    told = [*seen.warnings, *seen.profile.warnings, *groups.warnings]
    if not fleet.replace:
        told += [
            f"{id} is not as the knobs have it and stays so: {text}. "
            "With --data replace=true a new one is launched, and this one terminated"
            for id, text in changes(found, seen, fleet).items()
        ]
    return told


def _by_zone(prices: Mapping[str, float]) -> str:
    ordered = sorted(prices.items(), key=lambda entry: (entry[1], entry[0]))
    return ", ".join(f"{zone} {usd:.4f}" for zone, usd in ordered)
