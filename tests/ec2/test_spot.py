"""The look-out for spot interruptions: the script with a metadata service on loopback."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyinfra.api import StringCommand

from facts.script import FILES
from facts.units import FoundUnit
from operations.filesystem import Absent
from operations.spot import SCRIPT_PATH, SERVICE, TIMER, entries, plan, unit_texts
from tests.ec2.interruption import NOTICE, Metadata, metadata_service

UNITS = unit_texts("vllm.service")
RUNNING = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "UnitFileState": "enabled",
    "NeedDaemonReload": "no",
}


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with metadata_service() as held:
        yield held


@dataclass
class Host:
    """A machine with a systemctl that notes what it is told."""

    folder: Path
    url: str

    def look(self) -> subprocess.CompletedProcess[str]:
        """Run the script as its unit does."""
        script = str(FILES / "spot" / "spot_interruption.py")
        record = str(self.folder / "heeded")
        return subprocess.run(
            [sys.executable, "-I", script, "--record", record, "vllm.service"],
            env={
                "PATH": f"{self.folder}:/usr/bin:/bin",
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def told(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    def systemctl(self, status: int) -> None:
        stub = self.folder / "systemctl"
        stub.write_text(f'#!/bin/sh\necho "$*" >>{self.folder}/log\nexit {status}\n')
        stub.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, metadata: Metadata) -> Host:
    made = Host(tmp_path, metadata.url)
    made.systemctl(0)
    return made


def test_without_a_notice_nothing_is_done_or_said(machine: Host, metadata: Metadata) -> None:
    ran = machine.look()

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert machine.told() == []
    assert metadata.asked == ["/latest/api/token", "/latest/meta-data/spot/instance-action"]


def test_a_notice_stops_the_server_once(machine: Host, metadata: Metadata) -> None:
    metadata.notice = NOTICE

    first, second = machine.look(), machine.look()

    assert machine.told() == ["stop -- vllm.service"]
    assert "takes this spot instance back: terminate at 2026-11-30T13:05:00Z" in first.stdout
    assert "drained and stopped within" in first.stdout
    assert all(line.startswith("<5>") for line in first.stdout.splitlines())
    assert (first.returncode, second.returncode, second.stdout) == (0, 0, "")


def test_another_notice_is_heeded_again(machine: Host, metadata: Metadata) -> None:
    metadata.notice = NOTICE
    machine.look()
    metadata.notice = NOTICE.replace("13:05", "14:05")
    machine.look()

    assert len(machine.told()) == 2


def test_a_stop_that_fails_is_tried_again(machine: Host, metadata: Metadata) -> None:
    metadata.notice = NOTICE
    machine.systemctl(1)
    assert machine.look().returncode == 1
    machine.systemctl(0)
    assert machine.look().returncode == 0
    assert len(machine.told()) == 2


def test_a_notice_that_cannot_be_read_is_still_a_notice(machine: Host, metadata: Metadata) -> None:
    metadata.notice = "<html>"

    assert "takes this spot instance back: '<html>'" in machine.look().stdout
    assert machine.told() == ["stop -- vllm.service"]


@pytest.mark.parametrize("status", [403, 500])
def test_without_a_metadata_service_it_is_silent(
    machine: Host, metadata: Metadata, status: int
) -> None:
    metadata.token_status = status  # 403 is what EC2 answers where it is switched off

    ran = machine.look()

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_where_nothing_listens_it_is_silent(machine: Host) -> None:
    machine.url = "http://127.0.0.1:1"

    ran = machine.look()

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def found(**state: str) -> dict[str, FoundUnit]:
    return {
        name: {"state": RUNNING | state, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        for name, text in UNITS.items()
    }


def commands(state: dict[str, FoundUnit]) -> list[str]:
    steps = plan(state, "vllm.service")
    assert all(isinstance(step.command, StringCommand) for step in steps)
    return [str(step.command) for step in steps]


DRIFTS = {
    "as it should be": (found(), []),
    "stopped": (found(ActiveState="inactive"), [f"systemctl restart {TIMER}"]),
    "disabled": (found(UnitFileState="disabled"), [f"systemctl enable {TIMER}"]),
    "not read": (found(NeedDaemonReload="yes"), ["systemctl daemon-reload"]),
    "its service not read": (
        found() | {"vllm-spot.service": found(NeedDaemonReload="yes")["vllm-spot.service"]},
        ["systemctl daemon-reload"],
    ),
    "new": (
        {name: {"state": {"LoadState": "not-found"}, "sha256": ""} for name in UNITS},
        [
            "systemctl daemon-reload",
            f"systemctl enable {TIMER}",
            f"systemctl restart {TIMER}",
        ],
    ),
    "written anew": (
        {name: {"state": RUNNING, "sha256": ""} for name in UNITS},
        ["systemctl daemon-reload", f"systemctl restart {TIMER}"],
    ),
}


@pytest.mark.parametrize(("state", "expected"), DRIFTS.values(), ids=DRIFTS)
def test_plan(state: dict[str, FoundUnit], expected: list[str]) -> None:
    assert commands(state) == expected


def test_where_nobody_looks_out_script_and_units_go() -> None:
    assert entries(None) == [Absent(SCRIPT_PATH)]
    assert [str(step.command) for step in plan(found(), None)] == [
        f"systemctl disable --now -- {name} && rm -f -- /etc/systemd/system/{name} && "
        "systemctl daemon-reload"
        for name in (TIMER, SERVICE)
    ]
    gone = {name: FoundUnit(state={"ActiveState": "inactive"}, sha256="") for name in UNITS}
    assert plan(gone, None) == []


def test_the_script_lies_where_the_unit_runs_it() -> None:
    text = UNITS["vllm-spot.service"]
    (start,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert SCRIPT_PATH in start.split()
    assert start.endswith(" vllm.service")
    assert SCRIPT_PATH in [entry.path for entry in entries("vllm.service")]


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name, text in UNITS.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "vllm-spot" in line]
    assert (done.returncode, ours) == (0, [])
