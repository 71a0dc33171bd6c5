"""The planner of the running server: what is found and what is wanted in, reasons out."""

import hashlib
from typing import Any

import pytest

from operations.service import Check, Wanted, journal, plan

UNIT = "vllm.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
DROP_INS = f"{UNIT_PATH}.d"
STAMP = "/var/lib/vllm-g5g/build.json"
KEY = "/etc/vllm-g5g/api-key.env"
TEXT = "# Managed\n\n[Service]\n"
WANTED = Wanted(
    unit=UNIT,
    unit_file=UNIT_PATH,
    argv=("python3", "serve", "--port", "8000"),
    environment={"HF_HUB_OFFLINE": "1"},
    texts={UNIT_PATH: TEXT},
    serves_from=(STAMP, KEY),
    check=Check("http://127.0.0.1:8000", "gemma", "What is SRE?", ready_seconds=600),
    api_key_file=KEY,
    api_key_generation=1,
)


def running(**changes: Any) -> Any:
    """A server that runs exactly what is wanted; keywords replace parts of that."""
    unit = {
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "UnitFileState": "enabled",
        "NeedDaemonReload": "no",
    }
    found = {
        "unit": unit | changes.pop("unit", {}),
        "unit_sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        "drop_ins": {},
        "process": {
            "argv": list(WANTED.argv),
            "environment": {"HF_HUB_OFFLINE": "1"},
        },
        "record": {
            UNIT_PATH: {"version": "1.1.1", "sha256": hashlib.sha256(b"[Service]").hexdigest()},
            STAMP: {"version": "2.2.2", "sha256": "s"},
            KEY: {"version": "3.3.3", "sha256": ""},
            DROP_INS: {"version": "", "sha256": ""},
        },
        "versions": {UNIT_PATH: "1.1.1", STAMP: "2.2.2", KEY: "3.3.3", DROP_INS: ""},
        "key_generation": 1,
        "age": 1000.0,
        "answer": {"status": 200, "text": "The practice of keeping systems up.", "error": ""},
    }
    return found | changes


FRESH = running(
    unit={
        "LoadState": "not-found",
        "ActiveState": "inactive",
        "SubState": "dead",
        "UnitFileState": "",
    },
    unit_sha256="",
    process={"argv": [], "environment": {}},
    record=None,
    versions={},
    key_generation=None,
    answer=None,
)
NO_ANSWER = {"status": 0, "text": "", "error": "[Errno 111] Connection refused"}
DEAD = "it runs and does not answer: "

RESTARTS = {
    "it crashed and waits to be started again": (
        running(unit={"ActiveState": "activating", "SubState": "auto-restart"}, answer=None),
        f"{UNIT} is activating (auto-restart), wanted running",
    ),
    "it was stopped": (
        running(unit={"ActiveState": "inactive", "SubState": "dead"}, answer=None),
        f"{UNIT} is inactive (dead), wanted running",
    ),
    "another argument": (
        running(process={"argv": ["python3", "serve", "--port", "9"], "environment": {}}),
        "it runs with 9 where 8000 is wanted; it runs with HF_HUB_OFFLINE=None, wanted '1'",
    ),
    "arguments in another order": (
        running(
            process={
                "argv": ["python3", "--port", "8000", "serve"],
                "environment": {"HF_HUB_OFFLINE": "1"},
            }
        ),
        "it runs with its arguments in another order",
    ),
    "another value of a managed variable": (
        running(process={"argv": list(WANTED.argv), "environment": {"HF_HUB_OFFLINE": "0"}}),
        "it runs with HF_HUB_OFFLINE='0', wanted '1'",
    ),
    "started by something else": (running(record=None), "it was not started by this unit"),
    "rebuilt since": (
        running(versions={**running()["versions"], STAMP: "9.9.9"}),
        f"{STAMP} was written after it started",
    ),
    "started from another unit text": (
        running(record={**running()["record"], UNIT_PATH: {"version": "1.1.1", "sha256": "other"}}),
        f"it was started from another {UNIT_PATH}",
    ),
    "started with a drop-in that is gone again": (
        running(record={**running()["record"], DROP_INS: {"version": "7.7.7", "sha256": ""}}),
        f"it was started with drop-ins of {DROP_INS}",
    ),
    "a key of an older generation": (
        running(key_generation=0),
        "its API key is of generation 0",
    ),
    "nonsense in place of an answer": (
        running(answer={"status": 200, "text": ": ok: ok: ok: ok: ok", "error": ""}),
        DEAD + "the text repeats ': ok': ': ok: ok: ok: ok: ok'",
    ),
    "a dead engine behind a living server": (
        running(answer={"status": 500, "text": "", "error": "EngineDeadError"}, age=20.0),
        DEAD + "HTTP 500: EngineDeadError",
    ),
    "nobody listens although the start is long over": (
        running(answer=NO_ANSWER),
        f"{DEAD}{NO_ANSWER['error']}",
    ),
}


def reasons(found: Any, served: tuple[str, ...] = ()) -> list[str]:
    return [step.reason for step in plan(found, WANTED, served)]


def commands(found: Any) -> list[str]:
    return [
        step.command.get_raw_value()  # type: ignore[attr-defined]
        for step in plan(found, WANTED, ())
    ]


def test_a_server_that_runs_what_is_wanted_is_left_alone():
    assert reasons(running()) == []


@pytest.mark.parametrize(("found", "reason"), RESTARTS.values(), ids=RESTARTS)
def test_it_is_restarted_once_and_the_reason_is_told(found, reason):
    (step,) = plan(found, WANTED, ())
    assert step.reason == reason
    assert step.command.get_raw_value().endswith("--restart")


def test_on_a_fresh_host_the_unit_is_read_enabled_and_started():
    assert commands(FRESH)[:2] == ["systemctl daemon-reload", f"systemctl enable {UNIT}"]
    assert "-m bench startup" in commands(FRESH)[2]
    assert reasons(FRESH)[2] == f"{UNIT} is inactive (dead), wanted running"


def test_what_an_earlier_operation_will_change_leads_to_a_restart_in_the_dry_run_too():
    assert reasons(running(), served=("the build", "the checkpoint")) == [
        "the build changes; the checkpoint changes"
    ]


def test_a_unit_text_that_is_put_back_is_read_again_without_a_restart():
    assert commands(running(unit_sha256="edited")) == ["systemctl daemon-reload"]
    assert commands(running(unit={"NeedDaemonReload": "yes"})) == ["systemctl daemon-reload"]


def test_a_drop_in_is_removed_and_its_content_shown():
    path = f"{DROP_INS}/50-hand made.conf"
    steps = plan(running(drop_ins={path: "[Service]\nNice=5\n"}), WANTED, ())
    assert [step.reason for step in steps] == [
        f"{path} changes the unit by hand",
        f"systemd has not read {UNIT} as it is on disk",
    ]
    assert steps[0].diff == ("-[Service]", "-Nice=5")
    assert steps[0].command.get_raw_value() == (
        f"rm -f -- '{path}' && rmdir --ignore-fail-on-non-empty -- {DROP_INS}"
    )


def test_a_masked_unit_is_unmasked_and_read_again():
    found = running(unit={"UnitFileState": "masked", "LoadState": "masked"})
    assert commands(found)[:2] == [f"systemctl unmask {UNIT}", "systemctl daemon-reload"]


def test_a_disabled_unit_is_enabled_without_a_restart():
    assert reasons(running(unit={"UnitFileState": "disabled"})) == [
        f"{UNIT} is disabled, wanted enabled"
    ]


WAITS = {
    "still loading": running(answer=NO_ANSWER, age=30.0),
    "busy": running(answer={"status": 0, "text": "", "error": "timed out"}),
    "too many requests": running(answer={"status": 429, "text": "", "error": "full"}),
    "in its checks": running(
        unit={"ActiveState": "activating", "SubState": "start-pre"},
        process={"argv": [], "environment": {}},
        record=None,
        answer=None,
    ),
}


@pytest.mark.parametrize("found", WAITS.values(), ids=WAITS)
def test_a_server_that_may_yet_answer_is_waited_for_and_not_restarted(found):
    (step,) = plan(found, WANTED, ())
    assert "does not answer yet" in step.reason
    assert not step.command.get_raw_value().endswith("--restart")


def test_the_key_is_handed_over_by_file_only():
    (step,) = plan(running(record=None), WANTED, ())
    assert f"--api-key-file {KEY}" in step.command.get_raw_value()


def test_only_the_start_that_failed_is_diagnosed():
    invocation = "0123456789abcdef" * 2
    said = [f"vllm.service died while starting (exit-code, invocation {invocation})"]
    shown = journal(UNIT, said).get_raw_value()
    assert f"_SYSTEMD_INVOCATION_ID={invocation} + INVOCATION_ID={invocation}" in shown
    assert f"--unit {UNIT}" in journal(UNIT, ["it was late"]).get_raw_value()
