"""The smoke check on a host: what it demands, what it records, when it is due again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from files.bench.throughput import Trial, measure
from files.bench.verdict import bandwidth_complaints, reasons, speed_complaints
from operations import filesystem
from operations.filesystem import Directory
from operations.smoke import Check, checked, digest_of, plan, program_files
from tests.bench.fake_server import (
    Body,
    FakeServer,
    Refusal,
    obedient,
    spoken,
    unused_url,
)
from tests.unit.converge import converge, plan_of

FULL = '{"ignore_eos": true}'
QUESTION, EXPECT = "What is SRE?", "reliab"
ANSWER = ["Site ", "reliability ", "engineering."]
MEMORY: dict[str, Any] = {
    "figures": {"read": {"median": 277.0, "share_of_peak": 0.865, "wrong": None}},
    "conditions": {},
}


def sensible(body: Body) -> list[bytes]:
    asked = body["messages"][0]["content"]
    return spoken(ANSWER) if asked == QUESTION else obedient(body)


@pytest.fixture
def check(server: FakeServer, tmp_path: Path) -> Check:
    """A check against the fake server; the interpreter is a stub that prints a report."""
    server.answer = sensible
    python = tmp_path / "torch-python"
    python.write_text(f"#!/bin/sh\necho '{json.dumps(MEMORY)}'\n")
    python.chmod(0o755)
    return Check("tiny", QUESTION, EXPECT, str(python), url=server.url, wait=0, full_length=FULL)


def install(tmp_path: Path) -> dict[str, Any]:
    directory = str(tmp_path / "lib")
    entries = [Directory(directory), *program_files(directory)]
    converge(filesystem.present, entries=entries)
    record = str(tmp_path / "var" / "smoke.json")
    return {"directory": directory, "record": record, "texts": {}}


def test_a_check_runs_once_and_again_when_what_is_served_changes(
    check: Check, tmp_path: Path
) -> None:
    stamp = tmp_path / "stamp"
    places = install(tmp_path)
    arguments = {"check": check, "served": [str(stamp)], **places}
    assert plan_of(checked, **arguments)
    assert converge(checked, **arguments)
    assert not converge(checked, **arguments)

    stamp.write_text("another build")

    assert converge(checked, **arguments)
    assert not plan_of(checked, **arguments)
    record = json.loads(Path(places["record"]).read_text())
    assert record["passed"]
    assert record["throughput"]["answer"]["text"] == "".join(ANSWER)
    assert [run["tokens_asked"] for run in record["throughput"]["runs"]] == [64, 256]
    assert [run["repeats"][0]["tokens"] for run in record["throughput"]["runs"]] == [64, 256]


def test_a_failed_check_is_on_record_and_due_again(
    check: Check, server: FakeServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda body: spoken([": ok"] * 40)
    arguments = {"check": check, "served": [], **install(tmp_path)}
    with pytest.raises(Exception, match="No hosts remaining"):
        converge(checked, **arguments)
    record = json.loads(Path(arguments["record"]).read_text())
    assert not record["passed"]
    assert "repeats ': ok'" in record["complaints"][0]
    assert plan_of(checked, **arguments)

    server.answer = sensible

    assert converge(checked, **arguments)
    assert not plan_of(checked, **arguments)


def test_a_stricter_demand_is_a_new_check(check: Check) -> None:
    programs = program_files("/lib")
    looser = digest_of({}, programs, check)
    assert digest_of({}, programs, replace(check, least_gb_per_s=256.1)) != looser
    assert digest_of({"stamp": None}, programs, check) != looser


PLANS = {
    "never checked": (None, {}, "no smoke check is on record"),
    "passed, same digest": ({"passed": True}, {}, None),
    "passed, but asked for": ({"passed": True}, {"always": True}, "a check was asked for"),
    "passed, but an earlier step changes": (
        {"passed": True},
        {"changing": True},
        "what is served changes in this run",
    ),
    "failed": ({"passed": False}, {}, "the check of 2026-11-30 failed: slow"),
    "another digest": (
        {"passed": True, "digest": "0"},
        {},
        "what is served or demanded has changed since the check of 2026-11-30",
    ),
}


@pytest.mark.parametrize(("found", "arguments", "reason"), PLANS.values(), ids=PLANS)
def test_plan(found: Any, arguments: dict[str, bool], reason: str | None) -> None:
    check = Check("tiny", QUESTION, EXPECT, "python3")
    digest = digest_of({}, program_files("/lib"), check)
    record: Any = found and {"digest": digest, "at": "2026-11-30", "complaints": ["slow"], **found}
    steps = plan({"record": record, "files": {}}, check, "/lib", "/record", texts={}, **arguments)
    assert [step.reason for step in steps] == ([reason] if reason else [])


def test_the_command_quotes_what_it_is_given() -> None:
    check = Check("a b", "What's $HOME?", "--x|'", "python3", lengths=(8,))
    (step,) = plan({"record": None, "files": {}}, check, "/lib", "/record", texts={})
    text = step.command.get_raw_value()  # type: ignore[attr-defined]
    assert """'--question=What'"'"'s $HOME?'""" in text
    assert """'--expect=--x|'"'"''""" in text
    assert "--lengths 8" in text


def throughput(server: FakeServer, expect: str = EXPECT) -> dict[str, Any]:
    client = server.client()
    seconds = iter(range(1_000_000))
    return measure(client, Trial(QUESTION, expect, [8], 3), lambda: float(next(seconds)))


def test_warm_ups_are_kept_and_never_averaged(server: FakeServer) -> None:
    server.answer = sensible
    report = throughput(server)
    (run,) = report["runs"]
    assert report["complaints"] == []
    assert run["warmup"]["tokens"] == 8
    assert run["tpot_s"]["n"] == len(run["repeats"]) == 3
    # Nobody's prefix cache helps: no two timed prompts begin alike.
    prompts = {body["messages"][0]["content"][:12] for body in server.requests[1:]}
    assert len(prompts) == 4


DEGENERATE = {
    "repeated": (["ok: "] * 8, "repeats"),
    "replacement characters": (["a", "�", "b"], "replacement characters"),
    "blank": ([" ", "\n"], "the text is empty"),
    "beside the question": (["I ", "like ", "trains."], "does not match 'reliab'"),
}


@pytest.mark.parametrize(("words", "complaint"), DEGENERATE.values(), ids=DEGENERATE)
def test_nonsense_is_a_failure_that_shows_the_text(
    server: FakeServer, words: list[str], complaint: str
) -> None:
    server.answer = lambda body: spoken(words)
    assert complaint in throughput(server)["complaints"][0]


def test_a_server_that_fails_half_way_leaves_what_was_measured(server: FakeServer) -> None:
    server.answer = lambda body: (
        sensible(body) if len(server.requests) < 3 else Refusal(503, {"detail": "overloaded"})
    )
    report = throughput(server)
    assert report["answer"]["complaint"] is None
    assert report["complaints"] == ["busy: HTTP 503 for model tiny: overloaded"]


def test_a_slow_server_is_named_with_its_figures() -> None:
    runs = [{"tokens_asked": 64, "decode_tokens_per_s": {"median": 20.0, "min": 19, "max": 21}}]
    report = {"complaints": [], "runs": runs}
    assert speed_complaints(report, 20.0) == []
    (complaint,) = speed_complaints(report, 40.0)
    assert complaint.startswith("64 tokens decode at 20.00 tokens/s, wanted at least 40")


def test_low_bandwidth_is_explained_by_what_the_gpu_says() -> None:
    conditions = {
        "ecc.mode.current": "Enabled",
        "clocks.mem": "405",
        "clocks.max.mem": "5001",
        "clocks_throttle_reasons.active": "0x0000000000000004",
        "other_processes": [{"pid": "812", "process": "python3", "mib": "13501"}],
    }
    low = MEMORY | {"conditions": conditions}
    assert bandwidth_complaints(low, 256.1) == []
    (complaint,) = bandwidth_complaints(low, 300.0)
    assert "277.0 GB/s, wanted at least 300.0" in complaint
    for reason in ("process 812 (python3)", "ECC is on", "405 MHz", "throttle reasons 0x4"):
        assert reason in complaint


def test_an_idle_bit_and_absent_figures_are_no_reason() -> None:
    assert reasons({"clocks_throttle_reasons.active": "0x1", "clocks.mem": "[N/A]"}) == []


def test_a_probe_that_cannot_run_is_a_complaint(check: Check, tmp_path: Path) -> None:
    arguments = {"check": replace(check, torch_python="/nowhere/python3"), "served": []}
    arguments |= install(tmp_path)
    with pytest.raises(Exception, match="No hosts remaining"):
        converge(checked, **arguments)
    (complaint,) = json.loads(Path(str(arguments["record"])).read_text())["complaints"]
    assert "bandwidth could not be measured" in complaint
    assert "/nowhere/python3" in complaint


def test_a_server_that_is_down_fails_the_check(check: Check, tmp_path: Path) -> None:
    arguments = {"check": replace(check, url=unused_url()), "served": [], **install(tmp_path)}
    with pytest.raises(Exception, match="No hosts remaining"):
        converge(checked, **arguments)
    record = json.loads(Path(str(arguments["record"])).read_text())
    assert record["complaints"] == ["/health was not 200 within 0 s"]
    assert record["bandwidth"]["figures"]["read"]["median"] == 277.0
