"""What `make drift` reads out of a dry run, how it ends, and the command that it is also."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import drift
from drift import Change, changes_in, table

UNIT = "Ensure the unit is current"
PLAN = {
    "plan": [
        {
            "names": [UNIT],
            "hosts_with_change": ["@ssm/i-1"],
            "hosts_with_conditional_change": [],
        },
        {"names": ["Ensure it runs"], "hosts_with_change": [], "hosts_with_conditional_change": []},
    ]
}
LOG = f"    [\x1b[1m@ssm/i-1\x1b[0m] {UNIT}: /u differs in content\n    [@ssm/i-2] {UNIT}: other\n"
CHANGES = [Change("@ssm/i-1", UNIT, ("/u differs in content",))]


def test_a_plan_becomes_changes_with_their_reasons():
    assert changes_in(json.dumps(PLAN), LOG) == CHANGES


def test_the_table_names_host_operation_and_reason():
    assert table(CHANGES).splitlines() == [
        "@ssm/i-1",
        f"  {UNIT}",
        "    /u differs in content",
    ]


ENDINGS = {
    "clean": (json.dumps({"plan": []}), 0, 0),
    "drift": (json.dumps(PLAN), 0, 2),
    "one host failed beside a drift": (json.dumps(PLAN), 1, 1),
    "no JSON at all": ("", 1, 1),
    "other JSON": ("{}", 0, 1),
}


@pytest.mark.parametrize(("report", "code", "status"), ENDINGS.values(), ids=ENDINGS)
def test_exit_status(report, code, status, tmp_path, monkeypatch, capsys):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{report}\nE\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(drift.sys, "executable", str(program))
    assert drift.main([]) == status
    assert (UNIT in capsys.readouterr().out) == (report == json.dumps(PLAN))


COMMAND = Path(sys.executable).with_name("vllm-g5g-drift")
THIS_HOST = 'hosts = ["@local"]\n'
CHANGING = """from pyinfra.operations import server
server.shell(name="Ensure it is so", commands=["true"])
"""
FOLDERS = {
    "neither": ({}, (), 1, "inventory.py and deploy.py not found in "),
    "no deploy": ({"inventory.py": THIS_HOST}, (), 1, "deploy.py not found in "),
    "no inventory": ({"deploy.py": ""}, (), 1, "inventory.py not found in "),
    "another inventory that is not there": (
        {"inventory.py": THIS_HOST, "deploy.py": ""},
        ("mine.py",),
        1,
        "mine.py not found in ",
    ),
    "nothing to do": ({"inventory.py": THIS_HOST, "deploy.py": ""}, (), 0, "nothing has drifted"),
    "an inventory that is a host": ({"deploy.py": ""}, ("@local",), 0, "nothing has drifted"),
    "flags alone": (
        {"inventory.py": THIS_HOST, "deploy.py": CHANGING},
        ("--limit", "@local"),
        2,
        "@local\n  Ensure it is so",
    ),
    "a question": ({}, ("--help",), 0, "Exit status 0: nothing; 2: drift; 1: something"),
}


@pytest.mark.parametrize(("files", "arguments", "status", "said"), FOLDERS.values(), ids=FOLDERS)
def test_the_installed_command_asks_the_deploy_of_its_folder(
    files, arguments, status, said, tmp_path
):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run([COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert said in (done.stderr if status == 1 else done.stdout)
    assert done.returncode == status
