"""What `make try` decides and refuses, without a container."""

import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.container import engine as engines
from tests.container import listing, rehearsal
from tests.container.console import Stages, StepFailed, alive, run_live, table
from tests.container.pyinfra_run import Run, durations, outcome

SETUP = Path(__file__).with_name("setup.sh")
GOOD = "SRE is a practice that applies software engineering to operations."


def _run(*changed: str) -> Run:
    return Run(0, planned=(), changed=changed, failed=(), log="")


VERDICTS: dict[str, tuple[Run, str, list[str]]] = {
    "all is well": (_run(), GOOD, []),
    "the second run changed something": (
        _run("Ensure x"),
        GOOD,
        ["the second run changed: Ensure x"],
    ),
    "no text": (_run(), " ", ["the text is empty"]),
}


@pytest.mark.parametrize(("second", "answer", "complaints"), VERDICTS.values(), ids=VERDICTS)
def test_judge(second: Run, answer: str, complaints: list[str]) -> None:
    assert rehearsal.judge(second, answer) == complaints


def test_repeated_tokens_are_no_answer() -> None:
    (complaint,) = rehearsal.judge(_run(), ": ok: ok: ok: ok: ok: ok: ok: ok: ok")
    assert "repeats" in complaint


def test_a_port_that_someone_else_has_is_refused_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StepFailed, match=rf"127\.0\.0\.1:{port}.*Nothing was started"):
            rehearsal.refuse_taken_port(port, None)


def test_without_any_engine_the_command_to_type_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StepFailed, match=r"apt-get install --yes podman runc mmdebstrap git"):
        engines.find()


def _stub(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH of a machine that has a shell and apt-get, and no container engine."""
    for name in ("sh", "dirname", "cat"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    _stub(tmp_path, "apt-get", f'echo "$@" >>{tmp_path}/asked')
    return tmp_path


def _set_up(path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", str(SETUP), "engine"],
        env={**os.environ, "PATH": str(path)},
        capture_output=True,
        text=True,
    )


def test_without_root_the_set_up_prints_the_command_and_installs_nothing(bare_path: Path) -> None:
    _stub(bare_path, "id", "echo 1000")
    done = _set_up(bare_path)
    assert done.returncode == 1
    assert "Type: sudo apt-get install --yes " in done.stderr
    assert "podman" in done.stderr
    assert not (bare_path / "asked").exists()


def test_as_root_the_set_up_installs_what_is_missing(bare_path: Path) -> None:
    _stub(bare_path, "id", "echo 0")
    done = _set_up(bare_path)
    assert done.returncode == 0, done.stderr
    asked = (bare_path / "asked").read_text()
    assert asked.startswith("update\n")
    assert "podman" in asked
    assert "mmdebstrap" in asked


def test_a_report_tells_the_plan_the_changes_and_the_failures() -> None:
    operation = {"names": ["Ensure x"], "success": ["h"], "error": [], "no_change": []}
    broken = {"names": ["Ensure y"], "success": [], "error": ["h"], "no_change": []}
    planned = {"hosts_with_change": [], "hosts_with_conditional_change": ["h"], "names": ["Ensure"]}
    report = {"plan": [planned], "results": {"operations": [operation, broken]}}
    run = outcome(1, json.dumps(report), "shown")
    assert run == Run(1, ("Ensure",), ("Ensure x",), ("Ensure y",), "shown")
    assert not run.clean


def test_an_operation_lasts_until_the_next_one_starts() -> None:
    shown = [
        (0.0, "--> Connecting to hosts...\n"),
        (1.0, "--> Starting operation: Ensure x \n"),
        (2.5, "    [host] Success\n"),
        (3.0, "--> Starting operation: Ensure y \n"),
        (3.5, "--> Results:\n"),
    ]
    assert durations(shown) == {"Ensure x": 2.0, "Ensure y": 0.5}


def test_a_run_without_a_report_is_never_clean() -> None:
    # pyinfra prints none where the only host failed, and exits 0 on Ctrl-C.
    assert not outcome(0, "", "shown").clean


def test_stages_keep_their_seconds_also_when_one_fails() -> None:
    shown: list[str] = []
    stages = Stages(show=shown.append)

    def fail() -> None:
        with stages.stage("boot", "Booting"):
            raise StepFailed("no")

    with pytest.raises(StepFailed):
        fail()
    assert list(stages.seconds) == ["boot"]
    assert shown == ["==> Booting"]
    assert re.fullmatch(r"  boot +\d+\.\d s", table(stages.seconds))


def test_a_silent_step_is_named_with_its_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with alive("making it"):
        pass
    assert re.fullmatch(r" +making it: \d+\.\d s\n", capsys.readouterr().err)


def test_a_failed_step_shows_the_end_of_its_output(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(StepFailed, match=r"(?s)making it failed.*exited 3.*    the reason"):
        run_live(["sh", "-c", "echo the reason; exit 3"], doing="making it", log=log)
    assert log.read_text() == "the reason\n"


entries = st.dictionaries(st.text(max_size=3), st.lists(st.integers(), max_size=2), max_size=4)


@given(entries, entries)
def test_differences_are_exactly_what_was_added_removed_or_changed(
    before: dict[str, list[object]], after: dict[str, list[object]]
) -> None:
    found = listing.differences(before, after)
    patched = {path: value for path, value in before.items() if path not in found}
    patched |= {path: value for path, (_, value) in found.items() if isinstance(value, list)}
    assert patched == after
    assert listing.differences(after, after) == {}
