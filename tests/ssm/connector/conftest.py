"""Hosts of an emulator as pyinfra has them."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all, disconnect_all

from pyinfra_ssm.emulator import DEFAULT_ID
from tests.ssm.conftest import Emulate

NAME = f"@ssm/{DEFAULT_ID}"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def inventory() -> Iterator[Any]:
    """Connect to hosts of the emulator that was started; disconnect at the end."""
    states = []

    def inventory(names: Any = (NAME,), **data: Any) -> Any:
        state = State(Inventory((list(names), data)), Config())
        states.append(state)
        connect_all(state)
        return state

    yield inventory
    for state in states:
        disconnect_all(state)


@pytest.fixture
def host(emulate: Emulate, inventory: Any) -> Any:
    emulate()
    return inventory().inventory.get_host(NAME)
