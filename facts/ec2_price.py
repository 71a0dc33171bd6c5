"""What instances cost, from EC2's spot price history.

Spot instances alone: EC2's own API does not tell on-demand prices.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from facts.aws import Aws
from facts.ec2 import Instance

# EC2 keeps 90 days of history; longer ago than this the first price of it stands in.
HISTORY = timedelta(days=89)


@dataclass(frozen=True)
class Price:
    """From `since` on, until a later one, an hour in this zone costs `usd`."""

    since: datetime
    usd: float


# (instance type, zone) -> its prices, oldest first.
History = Mapping[tuple[str, str], Sequence[Price]]


def spot_history(aws: Aws, types: Collection[str], since: datetime, until: datetime) -> History:
    """Return the Linux spot prices that held from `since` until `until`, also that before it."""
    history: dict[tuple[str, str], list[Price]] = defaultdict(list)
    if not types:
        return history
    with aws.asking("read the spot prices"):
        pages = aws.ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=sorted(types),  # type: ignore[arg-type]  # any string, the API says
            ProductDescriptions=["Linux/UNIX"],
            StartTime=max(since, until - HISTORY),
            EndTime=until,
        )
        for page in pages:
            for raw in page["SpotPriceHistory"]:
                key = raw["InstanceType"], raw["AvailabilityZone"]
                history[key].append(Price(raw["Timestamp"], float(raw["SpotPrice"])))
    return {key: sorted(prices, key=lambda p: p.since) for key, prices in history.items()}


def latest(history: History, type_: str) -> dict[str, float]:
    """Return zone -> the newest spot price of this type in USD an hour."""
    return {zone: prices[-1].usd for (kind, zone), prices in history.items() if kind == type_}


def cost(prices: Sequence[Price], since: datetime, until: datetime) -> float:
    """Return USD for the time between `since` and `until` at these prices, oldest first.

    Before the first price, the first one is taken.
    """
    if not prices:
        return 0.0
    total = 0.0
    ends = [price.since for price in prices[1:]] + [until]
    starts = [since] + [price.since for price in prices[1:]]
    for price, start, end in zip(prices, starts, ends, strict=True):
        span = min(end, until) - max(start, since)
        total += price.usd * max(span.total_seconds(), 0.0) / 3600
    return total


def cost_so_far(history: History, instance: Instance, now: datetime) -> float | None:
    """Return USD since this running spot instance started; None where that cannot be told."""
    prices = history.get((instance.type, instance.zone), [])
    if instance.market != "spot" or instance.state != "running" or not prices:
        return None
    return cost(prices, instance.launched, now)
