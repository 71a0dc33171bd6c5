"""Every knob is documented, validated and read; a group sets none that does not exist."""

import pytest

from desired.fleet import Fleet
from settings import Settings
from tests.check.knobs import HOST_GROUPS, assigned, read_attributes, undocumented, values


def test_the_defaults_are_exactly_the_settings() -> None:
    assert set(assigned("all")) == set(Settings.model_fields)


def test_the_fleet_knobs_are_exactly_those_of_the_fleet() -> None:
    assert set(assigned("@local")) == set(Fleet.model_fields)


@pytest.mark.parametrize("group", HOST_GROUPS)
def test_a_group_sets_only_what_exists_and_differs(group: str) -> None:
    defaults = values("all")
    same = {knob for knob, value in values(group).items() if value == defaults.get(knob, ...)}
    assert set(assigned(group)) <= set(defaults)
    assert same == set(), "a group file has only what differs"


@pytest.mark.parametrize("group", HOST_GROUPS)
def test_a_group_gives_valid_settings(group: str) -> None:
    Settings.of(group, {**values("all"), **values(group)})


@pytest.mark.parametrize("group", ["all", "@local"])
def test_every_knob_is_documented(group: str) -> None:
    assert undocumented(group) == []


def test_every_knob_is_read() -> None:
    unread = (Settings.model_fields.keys() | Fleet.model_fields.keys()) - set(read_attributes())
    assert unread == set()
