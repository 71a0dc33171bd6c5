"""What instances cost: EC2's spot price history, and AWS's price list for the rest.

Linux and shared hardware; without the volume, and without taxes or discounts.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from facts.aws import Aws, AwsError
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


def on_demand(aws: Aws, type_: str) -> float | None:
    """Return the price of an instance type in this region, USD an hour; None if not listed."""
    wanted = {
        "instanceType": type_,
        "regionCode": aws.region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    with aws.asking(f"read the price of {type_}"):
        answer = aws.pricing.get_products(
            ServiceCode="AmazonEC2",
            Filters=[
                {"Type": "TERM_MATCH", "Field": key, "Value": value}
                for key, value in wanted.items()
            ],
        )
    return parse_product(answer["PriceList"][0]) if answer["PriceList"] else None


def parse_product(text: str) -> float | None:
    """Return USD an hour from one product of the price list, which is JSON in a string."""
    for term in json.loads(text)["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            if dimension["unit"] == "Hrs":
                return float(dimension["pricePerUnit"]["USD"])
    return None


@dataclass(frozen=True)
class Prices:
    """What is known of prices; what may not be read is missing, and said in the warnings."""

    spot: History = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)  # on-demand, by instance type
    warnings: tuple[str, ...] = ()


def prices(
    aws: Aws, spot: Collection[str], fixed: Collection[str], since: datetime, now: datetime
) -> Prices:
    """Return the prices of these types on each market; they never stop anything."""
    history: History = {}
    listed: dict[str, float] = {}
    warnings = []
    try:
        history = spot_history(aws, spot, since, now)
    except AwsError as error:
        warnings.append(str(error))
    try:
        found = {type_: on_demand(aws, type_) for type_ in sorted(fixed)}
        listed = {type_: usd for type_, usd in found.items() if usd is not None}
    except AwsError as error:
        warnings.append(str(error))
    return Prices(history, listed, tuple(warnings))


def spending(aws: Aws, found: Collection[Instance], now: datetime) -> Prices:
    """Return the prices that the running ones of these instances have had since they started."""
    running = [entry for entry in found if entry.state == "running"]
    spot = [entry for entry in running if entry.market == "spot"]
    since = min((entry.launched for entry in spot), default=now)
    fixed = {entry.type for entry in running if entry.market == "on-demand"}
    return prices(aws, {entry.type for entry in spot}, fixed, since, now)


def cost_so_far(known: Prices, instance: Instance, now: datetime) -> float | None:
    """Return USD since this running instance was last started; None where that is not known."""
    if instance.market == "spot":
        known_prices = known.spot.get((instance.type, instance.zone), [])
    else:
        flat = known.fixed.get(instance.type)
        known_prices = [] if flat is None else [Price(instance.launched, flat)]
    return cost(known_prices, instance.launched, now) if known_prices else None
