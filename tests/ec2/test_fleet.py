"""The knobs of a fleet, from pyinfra's data."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyinfra.api.exceptions import DeployError

from desired.fleet import Fleet
from tests.ec2.provisioning import KNOBS


def test_the_defaults_of_group_data_are_a_fleet() -> None:
    made = Fleet.from_data(KNOBS, ())
    assert made.markets == ("spot", "on-demand")
    # Each knob stands in group_data/@local.py, and nothing there is read by nobody.
    assert {key for key in KNOBS if not key.startswith("__")} == set(Fleet.model_fields)


LISTS = {
    "commas": "us-east-1a, us-east-1b",
    "json, as pyinfra parses it": ["us-east-1a", "us-east-1b"],
}


@pytest.mark.parametrize("value", LISTS.values(), ids=LISTS)
def test_a_list_may_be_given_with_commas(value: object) -> None:
    assert Fleet.from_data(KNOBS | {"zones": value}, ["zones"]).zones == (
        "us-east-1a",
        "us-east-1b",
    )


def test_numbers_and_booleans_that_stayed_strings_are_converted() -> None:
    data = KNOBS | {"count": "3", "replace": "yes", "name": 42}
    made = Fleet.from_data(data, ["count", "replace", "name"])
    assert (made.count, made.replace, made.name) == (3, True, "42")


def test_every_bad_knob_is_named_with_what_was_found() -> None:
    with pytest.raises(DeployError) as raised:
        Fleet.from_data(KNOBS | {"count": "many", "market": "cheap"}, ["count", "market"])
    message = str(raised.value)
    assert "count: Input should be a valid integer" in message
    assert "(found 'many')" in message
    assert "market: Input should be 'spot', 'on-demand' or 'spot-then-on-demand'" in message
    assert "group_data/@local.py" in message
    assert "\n" not in message


def test_knobs_of_hosts_are_left_alone_but_not_taken_from_the_command_line() -> None:
    data = KNOBS | {"smoke": "always"}
    assert Fleet.from_data(data, ()).name == "vllm-g5g"
    with pytest.raises(DeployError, match=r"--data smoke: not a knob of provision\.py"):
        Fleet.from_data(data, ["smoke"])


@pytest.mark.parametrize("name", ["all", "cpu", "g5g", "inventory"])
def test_a_name_that_is_a_group_of_hosts_already_is_refused(name: str) -> None:
    with pytest.raises(DeployError, match="is a group already"):
        Fleet.from_data(KNOBS | {"name": name}, ["name"])


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=20), st.lists(st.text())
)


@given(st.sampled_from(sorted(Fleet.model_fields)), values)
def test_any_value_makes_a_fleet_or_one_line(knob: str, value: Any) -> None:
    try:
        made = Fleet.from_data(KNOBS | {knob: value}, [knob])
    except DeployError as error:
        told = str(error)
    else:
        assert Fleet.model_validate(json.loads(made.model_dump_json())) == made
        told = "one line"
    assert len(told.splitlines()) == 1
