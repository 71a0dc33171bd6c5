"""The connector as pyinfra uses it, in process and from the command line."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, HiddenValue, Inventory, QuoteString, State, StringCommand
from pyinfra.api.connect import connect_all, disconnect_all
from pyinfra.api.exceptions import ConnectError, InventoryError

from pyinfra_ssm._transport import Request
from pyinfra_ssm.connector import HostError, SSMConnector
from pyinfra_ssm.emulator import DEFAULT_ID, Instance
from tests.ssm.conftest import Emulate

NAME = f"@ssm/{DEFAULT_ID}"
PYINFRA = str(Path(sys.executable).with_name("pyinfra"))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def inventory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Connect to hosts of the emulator that was started; disconnect at the end."""
    states = []

    def inventory(names: Any = (NAME,), **data: Any) -> Any:
        state = State(Inventory((list(names), data)), Config())
        states.append(state)
        connect_all(state)
        return state

    yield inventory
    for state in states:
        disconnect_all(state)


@pytest.fixture
def host(emulate: Emulate, inventory: Any) -> Any:
    emulate()
    return inventory().inventory.get_host(NAME)


# Names


def test_an_instance_is_its_own_name() -> None:
    assert list(SSMConnector.make_names_data("mi-0123456789abcdef0")) == [
        ("@ssm/mi-0123456789abcdef0", {"ssm_target": "mi-0123456789abcdef0"}, ["@ssm"])
    ]


@pytest.mark.parametrize("name", [None, "", "web-1", "tag:Role", "tag:=x"])
def test_what_names_no_host_says_how_to_write_it(name: str) -> None:
    with pytest.raises(InventoryError, match="Write @ssm/"):
        list(SSMConnector.make_names_data(name))


FLEET = [
    Instance(tags={"Role": "inference"}),
    Instance(instance_id="i-0000000000000000a", tags={"Role": "inference"}, state="stopped"),
    Instance(instance_id="i-0000000000000000b", tags={"Role": "inference"}, ping="ConnectionLost"),
    Instance(instance_id="i-0000000000000000c", tags={"Role": "build"}),
    Instance(instance_id="i-0000000000000000d", tags={"Role": "inference"}),
]


def test_a_tag_names_the_hosts_that_can_be_reached_page_after_page(
    emulate: Emulate, caplog: pytest.LogCaptureFixture
) -> None:
    emulate(FLEET, page_size=1)
    names = [name for name, _, _ in SSMConnector.make_names_data("tag:Role=inference")]
    assert names == ["@ssm/i-0000000000000000d", NAME]
    assert "Skipped i-0000000000000000a: it is stopped" in caplog.text
    assert "Skipped i-0000000000000000b: its agent is ConnectionLost" in caplog.text


def test_a_tag_that_nobody_has_says_what_to_check(emulate: Emulate) -> None:
    emulate()
    with pytest.raises(InventoryError, match="matches no instance"):
        list(SSMConnector.make_names_data("tag:Role=nobody"))


# Commands and their arguments

ARGUMENTS = {
    "env": ({"_env": {"COLOUR": "it's $blue"}}, 'printf %s "$COLOUR"', "it's $blue"),
    "chdir": ({"_chdir": "/usr"}, "pwd", "/usr"),
    "shell": ({"_shell_executable": "bash"}, "echo ${BASH_VERSION:+bash}", "bash"),
    "sudo": ({"_sudo": True}, "id -un", "root"),
    "sudo as another": ({"_sudo": True, "_sudo_user": "nobody"}, "id -un", "nobody"),
    "su as another": ({"_su_user": "nobody", "_su_shell": "sh"}, "id -un", "nobody"),
    "stdin": ({"_stdin": ["one", "two"]}, "cat", "one\ntwo"),
    "terminal": ({"_get_pty": True}, "test -t 1 && echo yes", "yes"),
}


@pytest.mark.parametrize(("arguments", "command", "output"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_every_argument_is_honoured(host: Any, arguments: Any, command: str, output: Any) -> None:
    ok, lines = host.run_shell_command(StringCommand(command), **arguments)
    assert (ok, lines.stdout) == (True, output)


def test_success_is_what_the_caller_says_it_is(host: Any) -> None:
    assert host.run_shell_command(StringCommand("exit 3"))[0] is False
    assert host.run_shell_command(StringCommand("exit 3"), _success_exit_codes=[0, 3])[0] is True


def test_a_timeout_is_what_pyinfra_takes_for_one(host: Any) -> None:
    with pytest.raises(TimeoutError):
        host.run_shell_command(StringCommand("sleep 1000"), _timeout=1)


def test_output_that_is_not_text_is_replaced_and_not_lost(host: Any) -> None:
    _, lines = host.run_shell_command(StringCommand("printf 'a\\377b\\nnext\\n\\nlast'"))
    assert lines.stdout_lines == ["a\ufffdb", "next", "", "last"]


def test_a_death_by_signal_is_said(host: Any) -> None:
    ok, lines = host.run_shell_command(StringCommand("kill -TERM $$"))
    assert ok is False
    assert lines.stderr_lines == ["The command was killed by signal 15."]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the connector printed."""
    lines = []
    monkeypatch.setattr("pyinfra.api.output._echo", lambda text, **_: lines.append(text))
    return lines


def test_output_is_printed_line_by_line_under_the_name_of_its_host(host: Any, printed: Any) -> None:
    host.run_shell_command(StringCommand("echo shown; echo bad >&2; printf end"), print_output=True)
    assert sorted(printed) == [f"[{NAME}] {line}" for line in ("bad", "end", "shown")]


def test_input_is_printed_without_its_secrets(host: Any, printed: Any) -> None:
    command = StringCommand("printf %s", QuoteString(HiddenValue("hunter2")))
    ok, lines = host.run_shell_command(command, print_input=True)
    assert (ok, lines.stdout) == (True, "hunter2")
    (line,) = printed
    assert "*MASKED*" in line
    assert "hunter2" not in line


# Files


def test_files_go_by_name_and_by_object(host: Any, tmp_path: Path) -> None:
    assert host.put_file(io.StringIO("caf\u00e9\n"), str(tmp_path / "text"))
    assert (tmp_path / "text").read_text() == "caf\u00e9\n"
    assert host.put_file(str(tmp_path / "text"), str(tmp_path / "copy"), _sudo=True)
    sink = io.BytesIO()
    assert host.get_file(str(tmp_path / "copy"), sink)
    assert sink.getvalue().decode() == "caf\u00e9\n"
    assert host.get_file(str(tmp_path / "copy"), str(tmp_path / "back"), _sudo=True)
    assert (tmp_path / "back").read_text() == "caf\u00e9\n"


def test_a_file_error_names_host_action_and_cause(host: Any) -> None:
    with pytest.raises(HostError, match=rf"\[{NAME}\] could not write /no/such/f: No such file"):
        host.put_file(io.StringIO("x"), "/no/such/f")
    with pytest.raises(HostError, match=rf"\[{NAME}\] could not read /no/such: No such file"):
        host.get_file("/no/such", io.BytesIO())


def test_rsync_says_what_to_use_instead(host: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"files\.sync"):
        host.check_can_rsync()


# Sessions


def test_the_session_is_terminated_at_the_end(emulate: Emulate, inventory: Any) -> None:
    emulator = emulate()
    state = inventory()
    disconnect_all(state)
    assert [session["has_ended"] for session in emulator.sessions] == [True]
    assert [call["action"] for call in emulator.calls] == ["StartSession", "TerminateSession"]


def test_an_idle_session_that_the_service_ended_is_opened_again_in_silence(
    emulate: Emulate, inventory: Any
) -> None:
    emulator = emulate()
    host = inventory().inventory.get_host(NAME)
    emulator.set_faults(idle_timeout_s=0.1)
    session = host.connector._transport._session
    session.wait_for(lambda: session.ended, 20)
    emulator.set_faults(idle_timeout_s=None)
    ok, lines = host.run_shell_command(StringCommand("echo again"))
    assert (ok, lines.stdout) == (True, "again")
    assert len(emulator.sessions) == 2


def test_a_reboot_in_the_middle_fails_that_command_and_connect_waits_for_the_host(
    emulate: Emulate, inventory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pyinfra_ssm._liveness.HOST_PATIENCE", 1.0)
    monkeypatch.setattr("pyinfra_ssm._host_program.PING_EVERY", 0.2)
    monkeypatch.setattr("pyinfra_ssm._session._LOOK_EVERY", 0.2)
    monkeypatch.setattr("pyinfra_ssm._reach._LOOK_EVERY", 0.1)
    emulator = emulate()
    host = inventory().inventory.get_host(NAME)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    running = host.connector._transport.begin(request(f"echo >{fifo}; sleep 1000"))
    fifo.read_text()
    emulator.reboot(seconds=0.5)
    with pytest.raises(Exception, match=r"stopped answering|ended"):
        running.finish(lambda *_: None)
    host.disconnect()
    host.connect(raise_exceptions=True)
    assert host.run_shell_command(StringCommand("echo back"))[1].stdout == "back"


def request(command: str) -> Any:
    return Request(command)


# Failures

FAILURES = {
    "agent not connected": ({"not_connected": ["*"]}, {}, "TargetNotConnected.*Check that the in"),
    "no permission": (
        {"denied": ["StartSession"]},
        {"ssm_transport": "session"},
        "AccessDenied.*Allow ssm:StartSession",
    ),
    "no such document": (
        {},
        {"ssm_document": "None-Such", "ssm_transport": "session"},
        "InvalidDocument.*ssm_document",
    ),
    "no python": (
        {},
        {"ssm_python": "/no/python3", "ssm_transport": "session"},
        "could not start our program.*Install python3",
    ),
    "frames beyond what an agent takes": ({}, {"ssm_payload_size": 1 << 20}, "ssm_payload_size"),
    "a knob with a wrong value": ({}, {"ssm_transport": "telnet"}, "telnet, wanted auto"),
}


@pytest.mark.parametrize(("faults", "data", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failed_connection_says_why_and_what_to_do(
    emulate: Emulate, faults: Any, data: Any, message: Any
) -> None:
    emulate(**faults)
    state = State(Inventory(([NAME], data)), Config())
    with pytest.raises(ConnectError, match=message):
        state.inventory.get_host(NAME).connect(raise_exceptions=True)


def test_sudo_that_wants_a_password_is_an_error_and_no_hang(
    emulate: Emulate, tmp_path: Path
) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    identity = tmp_path / "id"
    identity.write_text("#!/bin/sh\necho 1000\n")
    for program in (sudo, identity):
        program.chmod(0o755)
    emulate([Instance(environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})])
    state = State(Inventory(([NAME], {"ssm_transport": "session"})), Config())
    with pytest.raises(ConnectError, match="sudo wants a password there"):
        state.inventory.get_host(NAME).connect(raise_exceptions=True)


def test_throttling_is_waited_out(emulate: Emulate, inventory: Any) -> None:
    emulator = emulate(throttle_first=3)
    assert inventory().inventory.get_host(NAME).connected
    assert [call["action"] for call in emulator.calls].count("StartSession") == 4


def test_without_sessions_run_command_takes_over_and_says_so_once(
    emulate: Emulate, inventory: Any, caplog: pytest.LogCaptureFixture
) -> None:
    emulate(denied=["StartSession"])
    host = inventory().inventory.get_host(NAME)
    for _ in range(2):
        assert host.run_shell_command(StringCommand("echo $0"))[0]
    warnings = [r for r in caplog.records if "Falls back to Run Command" in r.getMessage()]
    assert len(warnings) == 1


# From the command line


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_a_run_terminates_its_session(
    emulate: Emulate, tmp_path: Path, number: signal.Signals
) -> None:
    emulator = emulate()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [PYINFRA, "-y", NAME, "exec", "--", f"echo >{fifo}; sleep 1000"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    fifo.read_text()
    process.send_signal(number)
    process.wait(60)
    assert [session["has_ended"] for session in emulator.sessions] == [True]


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


def test_foreseen_facts_give_the_plan_that_asking_gives(
    emulate: Emulate, deploy: Any, tmp_path: Path
) -> None:
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
