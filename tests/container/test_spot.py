"""The look-out for spot interruptions on a real systemd, with a metadata service on loopback."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from operations.spot import SCRIPT_PATH, SERVICE, TIMER
from tests.container import host as hosts
from tests.container import pyinfra_run
from tests.container.engine import Engine
from tests.container.host import TEST_PREFIX, Host
from tests.container.pyinfra_run import Run
from tests.ec2.interruption import NOTICE, Metadata, metadata_service

SERVER = "served.service"
OTHER = "other.service"
OPERATIONS = ("files", "timer")
UNITS = "/etc/systemd/system"


@dataclass
class Watched:
    """A host with a server, in front of a metadata service."""

    host: Host
    metadata: Metadata

    def converge(self, *flags: str, server_unit: str = SERVER) -> Run:
        data = {"server_unit": server_unit}
        return pyinfra_run.run(self.host, data, *flags, deploy="tests/container/deploys/spot.py")

    def state(self, unit: str) -> str:
        return self.host.run(f"systemctl show --property ActiveState --value {unit}")


@pytest.fixture(scope="module")
def watched(booted: tuple[Engine, str]) -> Iterator[Watched]:
    host = hosts.boot(*booted, f"{TEST_PREFIX}spot-{os.getpid()}")
    with metadata_service() as metadata:
        host.run(f"systemctl set-environment AWS_EC2_METADATA_SERVICE_ENDPOINT={metadata.url}")
        yield Watched(host, metadata)
    host.remove()


@pytest.fixture(scope="module")
def first(watched: Watched) -> tuple[Run, Run]:
    """The fresh host's dry run and first run."""
    return watched.converge("--dry"), watched.converge()


@pytest.fixture
def converged(watched: Watched, first: tuple[Run, Run]) -> Watched:
    assert first[1].code == 0, first[1].log
    return watched


def test_the_first_run_does_what_was_foretold_and_the_second_nothing(converged, first):
    assert first[0].planned == first[1].changed == OPERATIONS
    assert converged.converge().clean
    assert converged.state(TIMER) == "active"


DRIFTS = {
    "script edited": (f"echo >>{SCRIPT_PATH}", {"files"}),
    "timer stopped": (f"systemctl stop {TIMER}", {"timer"}),
    "timer disabled": (f"systemctl disable {TIMER}", {"timer"}),
    "timer masked": (
        f"ln -sf /dev/null {UNITS}/{TIMER}; systemctl daemon-reload",
        {"files", "timer"},
    ),
    "timer edited": (f"sed -i s/=5/=500/ {UNITS}/{TIMER}", {"files", "timer"}),
    "its service edited": (f"sed -i s/=115/=1/ {UNITS}/{SERVICE}", {"files", "timer"}),
}


@pytest.mark.drift
@pytest.mark.parametrize(("broken", "named"), DRIFTS.values(), ids=DRIFTS)
def test_drift_is_named_and_mended(converged, broken, named):
    converged.host.run(broken)
    foretold = converged.converge("--dry")
    assert set(foretold.planned) == named
    assert converged.converge().changed == foretold.planned
    assert converged.converge().clean
    assert converged.state(TIMER) == "active"


def test_a_notice_stops_the_server_and_lets_it_be_started_by_hand(converged):
    run = converged.host.run
    run(f"systemd-run --quiet --unit={SERVER} sleep infinity")
    run(f"systemctl stop {TIMER}; systemctl start {SERVICE}")
    assert converged.state(SERVER) == "active"
    converged.metadata.notice = NOTICE
    try:
        run(f"systemctl start {SERVICE}")
        assert converged.state(SERVER) == "inactive"
        assert "takes this spot instance back" in run(f"journalctl --unit {SERVICE} --output cat")
        run(f"systemd-run --quiet --unit={SERVER} sleep infinity; systemctl start {SERVICE}")
        assert converged.state(SERVER) == "active"
    finally:
        converged.metadata.notice = ""
        run(f"systemctl stop {SERVER}")
        converged.converge()


def test_it_goes_along_with_another_server(converged):
    assert converged.converge(server_unit=OTHER).changed == OPERATIONS
    assert converged.host.run(f"grep -c {OTHER} {UNITS}/{SERVICE}") == "1"
    assert converged.converge(server_unit=OTHER).clean


def test_it_is_taken_away_where_nobody_wants_it(converged):
    assert converged.converge("--dry", server_unit="").planned == OPERATIONS
    assert converged.converge(server_unit="").changed == OPERATIONS
    assert converged.converge(server_unit="").clean
    left = converged.host.run(f"ls {UNITS} {UNITS}/timers.target.wants")
    assert "spot" not in left
    assert converged.converge().changed == OPERATIONS
