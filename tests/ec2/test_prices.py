"""What instances cost, and since when."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.ec2_hosts import age
from facts.ec2_price import Price, cost, parse_product

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


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
