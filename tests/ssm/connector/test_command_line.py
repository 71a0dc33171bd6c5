"""The connector under the pyinfra command: fleets, interrupts, and facts that are foreseen."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm.emulator import Instance
from tests.ssm.conftest import Emulate
from tests.ssm.connector.conftest import NAME

PYINFRA = str(Path(sys.executable).with_name("pyinfra"))


@pytest.fixture
def pyinfra(tmp_path: Path) -> Any:
    """Run pyinfra in a folder of its own."""

    def pyinfra(*arguments: Any, **environment: Any) -> Any:
        return subprocess.run(
            [PYINFRA, *arguments],
            cwd=tmp_path,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return pyinfra


def test_one_dead_host_of_ten_stops_nobody_else(
    emulate: Emulate, pyinfra: Any, tmp_path: Path
) -> None:
    fleet = [Instance(instance_id=f"i-0000000000000000{n}") for n in range(10)]
    emulator = emulate(fleet, not_connected=["i-00000000000000003"])
    names = ",".join(f"@ssm/{instance.instance_id}" for instance in fleet)
    result = pyinfra("-y", "--fail-percent", "50", names, "exec", "--", "echo", "alive")
    assert result.stderr.count("alive") >= 9, result.stderr
    assert "[@ssm/i-00000000000000003] Could not connect" in result.stderr
    assert len(emulator.sessions) == 9
    assert all(session["has_ended"] for session in emulator.sessions)


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", SIGNALS)
def test_interrupting_a_run_terminates_its_session(
    emulate: Emulate, tmp_path: Path, number: signal.Signals
) -> None:
    emulator = emulate()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = begin(tmp_path, "exec", "--", f"echo >{fifo}; sleep 1000")
    fifo.read_text()
    process.send_signal(number)
    process.wait(60)
    assert [session["has_ended"] for session in emulator.sessions] == [True]


@pytest.mark.parametrize("number", SIGNALS)
def test_interrupting_the_start_of_a_session_terminates_it_too(
    emulate: Emulate, tmp_path: Path, number: signal.Signals
) -> None:
    emulator = emulate(delay_ms=500)
    process = begin(tmp_path, "exec", "--", "true")
    while not emulator.calls:  # the service has taken StartSession, and has not answered yet
        assert process.poll() is None
    process.send_signal(number)
    process.wait(60)
    assert [session["has_ended"] for session in emulator.sessions] == [True]


def begin(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start pyinfra and do not wait for it. It is interrupted also if this run is not, by nohup."""
    return subprocess.Popen(
        ["env", "--default-signal", PYINFRA, "-y", NAME, *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


SECRETS = """
from pyinfra.api import HiddenValue, QuoteString, StringCommand
from pyinfra.operations import server
server.shell(
    name="secret",
    commands=[StringCommand("test", QuoteString(HiddenValue("hunter2")), "=", "hunter$N")],
    _env={"N": "2", "TOKEN": HiddenValue("hunter3")},
    _stdin="hunter4",
)
"""


@pytest.mark.parametrize("verbosity", ["-vvv", "--debug"])
def test_no_secret_is_printed_however_much_is_said(
    emulate: Emulate, pyinfra: Any, tmp_path: Path, verbosity: str
) -> None:
    emulate()
    (tmp_path / "deploy.py").write_text(SECRETS)
    result = pyinfra("-y", verbosity, NAME, "deploy.py")
    assert result.returncode == 0, result.stderr
    assert "secret" in result.stderr
    assert [word for word in ("hunter2", "hunter3", "hunter4") if word in str(result)] == []


PERSISTENT = """
from pyinfra.operations import server
server.shell(name="third time", commands=["echo >>tries; [ $(wc -l <tries) = 3 ]"], _retries=5,
             _retry_delay=0, _chdir="FOLDER")
server.shell(name="until it is long", commands=["echo >>long; wc -l <long"], _retries=5,
             _retry_delay=0, _chdir="FOLDER",
             _retry_until=lambda output: output["stdout_lines"] != ["4"])
server.shell(name="too long", commands=["sleep 1000"], _timeout=1, _ignore_errors=True)
server.shell(name="goes on", commands=["false", "touch FOLDER/went-on"], _ignore_errors=True,
             _continue_on_error=True)
server.shell(name="to the end", commands=["touch FOLDER/done"])
"""


def test_what_fails_is_repeated_or_passed_over_as_asked(
    emulate: Emulate, pyinfra: Any, tmp_path: Path
) -> None:
    emulate()
    (tmp_path / "deploy.py").write_text(PERSISTENT.replace("FOLDER", str(tmp_path)))
    result = pyinfra("-y", NAME, "deploy.py")
    assert result.returncode == 0, result.stderr
    assert "Success on retry 2" in result.stderr
    assert "Command timed out after 1s" in result.stderr
    assert (tmp_path / "long").read_text() == "\n" * 4
    assert (tmp_path / "went-on").exists()
    assert (tmp_path / "done").exists()


DEPLOY = """
from io import StringIO
from pyinfra.operations import files
for i in range(5):
    files.put(name=f"f{i}", src=StringIO(f"content {i}\\n"), dest=f"FOLDER/f{i}", mode="600")
"""


@pytest.fixture
def deploy(tmp_path: Path, pyinfra: Any) -> Any:
    """Run the deploy; return its JSON."""
    (tmp_path / "host").mkdir()
    (tmp_path / "deploy.py").write_text(DEPLOY.replace("FOLDER", str(tmp_path / "host")))

    def deploy(*arguments: Any) -> Any:
        result = pyinfra(NAME, "deploy.py", "-v", *arguments)
        assert result.returncode == 0, result.stderr
        return result

    return deploy


def plan(result: Any) -> Any:
    """Return the operations that the plan changes."""
    return [line.split()[0] for line in result.stderr.splitlines() if f" ({NAME})" in line]


def test_foreseen_facts_give_the_plan_that_asking_gives(emulate: Emulate, deploy: Any) -> None:
    emulate()
    deploy("-y")
    asked = deploy("--dry", "--data", "ssm_prefetch=False")
    deploy("--dry")
    foreseen = deploy("--dry")
    assert plan(asked) == plan(foreseen) == []
    assert "facts were answered in advance" in foreseen.stderr
    assert "answered in advance" not in asked.stderr


def test_foreseen_facts_see_what_drifted_since(
    emulate: Emulate, deploy: Any, tmp_path: Path
) -> None:
    emulate()
    deploy("-y")
    deploy("--dry")
    (tmp_path / "host" / "f2").write_text("drifted\n")
    (tmp_path / "host" / "f4").unlink()
    foreseen = deploy("--dry")
    asked = deploy("--dry", "--data", "ssm_prefetch=False")
    assert plan(foreseen) == plan(asked) == ["f2", "f4"]


def test_what_is_remembered_is_commands_for_this_user_alone(emulate: Emulate, deploy: Any) -> None:
    emulate()
    deploy("--dry")
    (file,) = (Path(os.environ["XDG_CACHE_HOME"]) / "pyinfra-ssm").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    saved = json.loads(file.read_text())
    assert {key for each in saved["commands"] for key in each} == {
        "command",
        "timeout",
        "terminal",
    }
