"""The planners of token and API key, and the key against this machine's own file system."""

import hashlib
import os
import re
import subprocess
from typing import Any

import pytest

from operations import secret
from operations.filesystem import Absent, File
from operations.secret import TOKEN_PATH, TOKEN_UNIT, TokenSource, key_plan, token_plan
from tests.unit.converge import converge, plan_of

SOURCE = TokenSource("us-west-2", "hf/token")
GOOD_FILE = {"present": True, "good": True, "mode": "600", "owner": "root:root"}
UNIT = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "UnitFileState": "enabled",
    "NeedDaemonReload": "no",
}
UNIT_TEXT = next(
    entry.content
    for entry in secret.token_entries(SOURCE)
    if isinstance(entry, File) and entry.path == secret.TOKEN_UNIT_PATH
)
KEY = "/etc/vllm-g5g/api-key.env"


def token(unit: dict[str, str] | None = None, **file: Any) -> Any:
    comments = {"comments": ["secretsmanager us-west-2 hf/token"]}
    return {
        "file": {**GOOD_FILE, **comments, **file},
        "unit": {**UNIT, **(unit or {})},
        "unit_sha256": hashlib.sha256(UNIT_TEXT.encode()).hexdigest(),
    }


FETCHES = {
    "after a reboot that could not fetch": (
        {**token({"ActiveState": "failed"}), "file": {"present": False}},
        f"{TOKEN_PATH} is missing; {TOKEN_UNIT} is failed",
    ),
    "empty or not one word": (token(good=False), f"{TOKEN_PATH} does not hold one printable word"),
    "readable by others": (token(mode="644"), f"{TOKEN_PATH} is 644 root:root, wanted 600"),
    "somebody else's": (token(owner="vllm:vllm"), f"{TOKEN_PATH} is 600 vllm:vllm, wanted 600"),
    "from another secret": (
        token(comments=["secretsmanager us-west-2 hf/old"]),
        f"{TOKEN_PATH} is not from hf/token in us-west-2",
    ),
}


def test_a_token_that_is_there_is_not_fetched_again():
    assert token_plan(token(), SOURCE) == []


@pytest.mark.parametrize(("found", "reason"), FETCHES.values(), ids=FETCHES)
def test_the_token_is_fetched(found, reason):
    (step,) = token_plan(found, SOURCE)
    assert step.reason.startswith(reason)
    assert step.command.get_raw_value() == f"systemctl restart {TOKEN_UNIT}"


def test_on_a_fresh_host_the_unit_is_read_enabled_and_started():
    fresh: Any = {
        "file": {"present": False},
        "unit": {"LoadState": "not-found"},
        "unit_sha256": "",
    }
    commands = [step.command.get_raw_value() for step in token_plan(fresh, SOURCE)]
    assert commands == [
        "systemctl daemon-reload",
        f"systemctl enable {TOKEN_UNIT}",
        f"systemctl restart {TOKEN_UNIT}",
    ]


def test_the_unit_names_the_secret_and_never_the_token():
    (script, unit) = secret.token_entries(TokenSource("eu-central-1", "a b%", keep_last=True))
    assert isinstance(script, File)
    assert isinstance(unit, File)
    assert (
        "ExecStart=/usr/bin/python3 -I /usr/local/lib/vllm-g5g/fetch_token.py "
        '--region eu-central-1 --secret-id "a b%%" --variable HF_TOKEN '
        f"--output {TOKEN_PATH} --keep-last\n"
    ) in unit.content


def test_without_a_source_nothing_of_it_stays():
    entries = secret.token_entries(None)
    assert all(isinstance(entry, Absent) for entry in entries)
    assert TOKEN_PATH in [entry.path for entry in entries]


GONE = {
    "never there": ("inactive", []),
    "fetched once": ("active", [f"{TOKEN_UNIT} is active, and no token is wanted"]),
    "could not fetch": ("failed", [f"{TOKEN_UNIT} is failed, and no token is wanted"]),
    "fetching": ("activating", [f"{TOKEN_UNIT} is activating, and no token is wanted"]),
}


@pytest.mark.parametrize(("active", "reasons"), GONE.values(), ids=GONE)
def test_a_unit_that_is_wanted_no_more_is_forgotten(active, reasons):
    steps = secret.gone_plan({"state": {"ActiveState": active}, "sha256": ""})
    assert [step.reason for step in steps] == reasons


@pytest.mark.parametrize("failed", [True, False], ids=["cut short", "after its exit"])
def test_it_is_stopped_and_a_failure_forgotten_before_systemd_reads_again(failed, tmp_path):
    stub, asked = tmp_path / "systemctl", tmp_path / "asked"
    stub.write_text(
        f'#!/bin/sh\necho "$*" >>{asked}\n[ "$1" != is-failed ] || exit {0 if failed else 1}\n'
    )
    stub.chmod(0o755)
    (step,) = secret.gone_plan({"state": {"ActiveState": "active"}, "sha256": ""})
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        ["sh", "-c", step.command.get_raw_value()], env={**os.environ, "PATH": path}, check=True
    )
    assert asked.read_text().splitlines() == [
        f"stop {TOKEN_UNIT}",
        f"is-failed --quiet {TOKEN_UNIT}",
        *([f"reset-failed {TOKEN_UNIT}"] if failed else []),
        "daemon-reload",
    ]


def test_systemd_accepts_the_unit(tmp_path):
    (*_, unit) = secret.token_entries(SOURCE)
    assert isinstance(unit, File)
    (tmp_path / TOKEN_UNIT).write_text(unit.content)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / TOKEN_UNIT], capture_output=True, text=True
    )
    assert done.stderr == ""


def test_the_scripts_verdict_is_read_first():
    journal = ["attempt 1 of 6: no route", "no token: this instance has no role. Attach one"]
    assert secret.token_failure(journal)[0] == journal[1]


MAKES = {
    "missing": ({"present": False}, "is missing"),
    "emptied": ({**GOOD_FILE, "good": False, "comments": []}, "does not hold one printable word"),
    "rotated": ({**GOOD_FILE, "comments": ["generation 1"]}, "is not of generation 2"),
}


@pytest.mark.parametrize(("found", "reason"), MAKES.values(), ids=MAKES)
def test_a_key_is_made(found, reason):
    (step,) = key_plan(found, KEY, generation=2)
    assert step.reason == f"{KEY} {reason}"
    assert step.command.get_raw_value().endswith(f" {KEY} 2")


def test_a_readable_key_is_made_private_and_stays_the_same():
    (step,) = key_plan({**GOOD_FILE, "mode": "644", "comments": ["generation 2"]}, KEY, 2)
    assert step.command.get_raw_value() == f"chown root:root {KEY} && chmod 600 {KEY}"


@pytest.mark.skipif(os.geteuid() != 0, reason="the key belongs to root")
def test_a_key_is_made_kept_mended_and_rotated(tmp_path):
    path = tmp_path / "etc" / "key.env"
    wanted = {"path": str(path), "generation": 1}

    assert plan_of(secret.api_key, **wanted)
    assert not path.exists()
    assert converge(secret.api_key, **wanted)
    first = path.read_text()
    assert re.fullmatch(r"VLLM_API_KEY=[0-9a-f]{64}\n# generation 1\n", first)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not converge(secret.api_key, **wanted)

    path.chmod(0o644)
    assert converge(secret.api_key, **wanted)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == first

    path.write_text("VLLM_API_KEY=two words\n# generation 1\n")
    assert converge(secret.api_key, **wanted)
    second = path.read_text()
    assert converge(secret.api_key, path=str(path), generation=2)
    assert len({first, second, path.read_text()}) == 3
