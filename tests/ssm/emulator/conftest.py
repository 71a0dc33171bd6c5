"""Emulators for the tests: this machine as the managed instance, no waiting where none is meant."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pyinfra_ssm.emulator import Emulator, Faults, Instance

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


@pytest.fixture
def start() -> Iterator[Callable[..., Emulator]]:
    """Start an emulator of one's own, with faults."""
    with ExitStack() as stack:

        def start(**faults: Any) -> Emulator:
            chosen = Faults(start_delay_s=0).changed(faults)
            return stack.enter_context(Emulator(chosen, FLEET, {"Root-Shell": ROOT_SHELL}))

        yield start
