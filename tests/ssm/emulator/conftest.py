"""Emulators for the tests: this machine as the managed instance, no waiting where none is meant."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings

from pyinfra_ssm.emulator import Emulator, Faults, Instance

# A slow machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT_SHELL = {
    "schemaVersion": "1.0",
    "sessionType": "InteractiveCommands",
    "parameters": {},
    "properties": {"linux": {"commands": "stty raw -echo; exec sh", "runAsElevated": True}},
}
FLEET = [
    Instance(tags={"Role": "inference"}),
    Instance(instance_id="i-0000000000000000a", tags={"Role": "inference"}, state="stopped"),
    Instance(instance_id="i-0000000000000000b", tags={"Role": "build"}, instance_type="c7g.large"),
]


@pytest.fixture(scope="session")
def shared() -> Iterator[Emulator]:
    """An emulator without faults, for tests that change nothing in it."""
    with Emulator(Faults(start_delay_s=0), FLEET, {"Root-Shell": ROOT_SHELL}) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def spare() -> Iterator[Emulator]:
    with Emulator(Faults(start_delay_s=0), FLEET, {"Root-Shell": ROOT_SHELL}) as emulator:
        yield emulator


@pytest.fixture
def start(spare: Emulator) -> Callable[..., Emulator]:
    """Return what gives an emulator of one's own, as if new, with faults."""

    def start(**faults: Any) -> Emulator:
        spare.reset(**faults)
        return spare

    return start
