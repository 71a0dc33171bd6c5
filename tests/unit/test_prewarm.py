"""The first reading of a volume: when it is arranged, and how its unit reads."""

import hashlib

import pytest

from facts.units import FoundUnit
from operations.filesystem import Absent, File
from operations.prewarm import PROGRAM, UNIT, UNIT_PATH, Prewarm, entries, plan

WANTED = Prewarm(
    server_unit="vllm.service",
    servers=("vllm.service", "transformers.service"),
    python="/opt/my python/bin/python3",
    packages=("torch", "vllm"),
    checkpoint="/models/gemma",
    record="/var/lib/vllm-g5g/prewarm.json",
    limit=900,
)
PROGRAM_FILE, UNIT_FILE = [entry for entry in entries(WANTED) if isinstance(entry, File)]
SHA256 = hashlib.sha256(UNIT_FILE.content.encode()).hexdigest()
ENABLED = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "UnitFileState": "enabled",
    "NeedDaemonReload": "no",
    "WantedBy": "vllm.service",
}
RELOAD = "systemctl daemon-reload"
REMOVE = f"systemctl disable --now -- {UNIT} && rm -f -- {UNIT_PATH} && {RELOAD}"

PLANS: dict[str, tuple[dict[str, str], str, Prewarm | None, list[str]]] = {
    "as it should be": ({}, SHA256, WANTED, []),
    "not run in this boot": ({"ActiveState": "inactive"}, SHA256, WANTED, []),
    "failed": ({"ActiveState": "failed"}, SHA256, WANTED, []),
    "disabled": (
        {"UnitFileState": "disabled", "WantedBy": ""},
        SHA256,
        WANTED,
        [f"systemctl enable {UNIT}"],
    ),
    "masked": (
        {"LoadState": "masked", "UnitFileState": "masked"},
        "",
        WANTED,
        [f"systemctl unmask {UNIT}", RELOAD, f"systemctl enable {UNIT}"],
    ),
    "not read by systemd": ({"NeedDaemonReload": "yes"}, SHA256, WANTED, [RELOAD]),
    "edited": ({}, "0" * 64, WANTED, [RELOAD]),
    "wanted by the other server": (
        {"WantedBy": "transformers.service"},
        SHA256,
        WANTED,
        [f"systemctl reenable {UNIT}"],
    ),
    "wanted by a server that is gone": (
        {"WantedBy": ""},
        SHA256,
        WANTED,
        [f"systemctl reenable {UNIT}"],
    ),
    "off, and there": ({}, SHA256, None, [REMOVE]),
    "off, removed by hand while it ran": ({}, "", None, [f"systemctl stop -- {UNIT}"]),
}


@pytest.mark.parametrize(("state", "sha256", "wanted", "commands"), PLANS.values(), ids=PLANS)
def test_plan(
    state: dict[str, str], sha256: str, wanted: Prewarm | None, commands: list[str]
) -> None:
    found = FoundUnit(state=ENABLED | state, sha256=sha256)
    assert [str(step.command) for step in plan(found, wanted)] == commands


NEVER_THERE = FoundUnit(state={"LoadState": "not-found", "ActiveState": "inactive"}, sha256="")


def test_a_new_host_gets_it_and_one_without_it_stays_so() -> None:
    commands = [str(step.command) for step in plan(NEVER_THERE, WANTED)]
    assert commands == [RELOAD, f"systemctl enable {UNIT}"]
    assert plan(NEVER_THERE, None) == []


def test_off_takes_the_program_away_and_leaves_the_unit_to_the_operation() -> None:
    assert entries(None) == [Absent(PROGRAM)]


def test_the_unit_runs_the_program_before_every_server_and_is_required_by_none() -> None:
    lines = UNIT_FILE.content.splitlines()
    assert PROGRAM_FILE.path == PROGRAM
    assert (
        f'ExecStart="/opt/my python/bin/python3" -I {PROGRAM} '
        "--record /var/lib/vllm-g5g/prewarm.json --limit 900 --package torch --package vllm "
        "--directory /models/gemma"
    ) in lines
    assert "Before=vllm.service transformers.service" in lines
    assert "TimeoutStartSec=960" in lines
    assert [line for line in lines if line.startswith(("WantedBy", "RequiredBy"))] == [
        "WantedBy=vllm.service"
    ]
