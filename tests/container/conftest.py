"""One container for the session: looked at fresh, converged once, then shared by all tests.

A test that breaks something on `host` mends it by converging.
"""

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.container import engine as engines
from tests.container import host as hosts
from tests.container import image, listing, stand_in
from tests.container.engine import Engine
from tests.container.host import CACHE, TEST_PREFIX
from tests.container.managed import managed
from tests.container.pyinfra_run import Run
from tests.container.selection import is_thorough
from tests.container.stand_in import StandIn

# Containers of two sessions on one machine must not meet.
NAME = f"{TEST_PREFIX}{os.getpid()}"


@dataclass(frozen=True)
class FirstDay:
    """What was seen on a fresh host: a dry run, and then the run that it foretold."""

    host: StandIn
    dry: Run
    written_by_dry_run: dict[str, tuple[object, object]]
    first: Run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the long cases to `make test-thorough`."""
    for item in items:
        if item.path.parent == Path(__file__).parent and is_thorough(item.path.name, item.name):
            item.add_marker(pytest.mark.thorough)


@pytest.fixture(scope="session")
def booted() -> tuple[Engine, str]:
    """The engine, and the image that its containers are booted from."""
    return image.ensure(engines.find(), CACHE)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Inventory data that points at the upstreams' stand-ins, served for the whole session."""
    with stand_in.prepare(CACHE).serve(tmp_path_factory.mktemp("upstreams")) as served:
        yield {**served, "port": _free_port(), "prewarm": True}


@pytest.fixture(scope="session")
def fresh(booted: tuple[Engine, str], data: dict[str, object]) -> Iterator[StandIn]:
    """A host as its image has it. The tests share it, so it stays so only until `first_day`."""
    host = hosts.boot(*booted, NAME)
    with managed(host) as (reached, _):
        yield StandIn(reached, data)
    host.remove()


@pytest.fixture(scope="session")
def first_day(fresh: StandIn) -> FirstDay:
    """The fresh host's dry run, whatever it wrote, and its first real run."""
    before = listing.take(fresh.host)
    dry = fresh.plan()
    written = listing.differences(before, listing.take(fresh.host))
    return FirstDay(fresh, dry, written, fresh.converge())


@pytest.fixture(scope="session")
def host(first_day: FirstDay) -> StandIn:
    """The converged host. Whoever breaks it mends it."""
    assert first_day.first.code == 0, first_day.first.log[-4000:]
    return first_day.host


def _free_port() -> int:
    """Return a port of loopback that nobody listens on; the server takes it minutes later."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
