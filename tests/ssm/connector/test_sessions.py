"""How the connection begins, is kept and ends, and why it fails."""

import os
import select
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State, StringCommand
from pyinfra.api.connect import disconnect_all
from pyinfra.api.exceptions import ConnectError

from pyinfra_ssm._transport import Request
from pyinfra_ssm.connector import HostError
from pyinfra_ssm.emulator import Instance
from tests.ssm.conftest import Emulate
from tests.ssm.connector.conftest import NAME


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


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_program_goes_also_where_sessions_may_not_be_terminated(
    emulate: Emulate, inventory: Any, interrupted: bool
) -> None:
    emulate(denied=["TerminateSession"])
    host = inventory().inventory.get_host(NAME)
    program = os.pidfd_open(int(host.run_shell_command(StringCommand("echo $PPID"))[1].stdout))
    if interrupted:
        host.connector._transport._session.abandon()
    host.disconnect()
    ended, _, _ = select.select([program], [], [], 30)
    os.close(program)
    assert ended


def test_a_session_that_this_machine_cannot_take_up_is_terminated(
    emulate: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = emulate()
    state = State(Inventory(([NAME], {})), Config())
    host = state.inventory.get_host(NAME)

    def refuse() -> Any:
        raise OSError("Too many open files")

    monkeypatch.setattr("pyinfra_ssm._session.Wakeup", refuse)
    with pytest.raises(ConnectError, match="Too many open files"):
        host.connect(raise_exceptions=True)
    assert [session["has_ended"] for session in emulator.sessions] == [True]


def test_a_session_in_which_nothing_starts_is_terminated(emulate: Emulate) -> None:
    emulator = emulate()
    data = {"ssm_python": "/no/python3", "ssm_transport": "session"}
    state = State(Inventory(([NAME], data)), Config())
    with pytest.raises(ConnectError):
        state.inventory.get_host(NAME).connect(raise_exceptions=True)
    assert [session["has_ended"] for session in emulator.sessions] == [True]


def test_after_an_interrupt_no_session_is_opened_again(emulate: Emulate, inventory: Any) -> None:
    emulator = emulate()
    host = inventory().inventory.get_host(NAME)
    host.connector._transport._session.abandon()
    with pytest.raises(HostError, match="interrupted"):
        host.run_shell_command(StringCommand("true"))
    assert len(emulator.sessions) == 1


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
