"""What `make drift` reads out of a dry run, and how it ends."""

import json

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
