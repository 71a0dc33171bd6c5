"""How the connection begins, is kept and ends, and why it fails."""

import itertools
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


@pytest.mark.parametrize("ended_before", [False, True])
def test_after_an_interrupt_no_session_is_opened_again(
    emulate: Emulate, inventory: Any, monkeypatch: pytest.MonkeyPatch, ended_before: bool
) -> None:
    emulator = emulate()
    host = inventory().inventory.get_host(NAME)
    if ended_before:
        host.connector._transport.close()
        monkeypatch.setattr("pyinfra_ssm._leaving._is_going", True)
    else:
        host.connector._transport._session.abandon()
    with pytest.raises(HostError, match="interrupted"):
        host.run_shell_command(StringCommand("true"))
    assert len(emulator.sessions) == 1


def test_after_an_interrupt_nobody_waits_for_a_host_to_come_back(
    emulate: Emulate, inventory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = emulate()
    host = inventory().inventory.get_host(NAME)
    host.disconnect()
    emulator.set_faults(not_connected=["*"])
    monkeypatch.setattr("pyinfra_ssm._leaving._is_going", True)
    # pyinfra's reboot takes a ConnectError for a reason to go on trying.
    with pytest.raises(HostError, match="interrupted"):
        host.connect()


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
    emulate([without(tmp_path, "sudo: a password is required")])
    state = State(Inventory(([NAME], {"ssm_transport": "session"})), Config())
    with pytest.raises(ConnectError, match="sudo wants a password there"):
        state.inventory.get_host(NAME).connect(raise_exceptions=True)


def test_throttling_is_waited_out(emulate: Emulate, inventory: Any) -> None:
    emulator = emulate(throttle_first=3)
    assert inventory().inventory.get_host(NAME).connected
    assert [call["action"] for call in emulator.calls].count("StartSession") == 4


def without(folder: Path, said: str) -> Instance:
    """Return an instance whose user is not root, and where sudo says that."""
    for name, text in (("sudo", f"echo '{said}' >&2; exit 1"), ("id", "echo 1000")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return Instance(environment={"PATH": f"{folder}:{os.environ['PATH']}"})


NO_SESSION: dict[str, tuple[Any, Any, str, str]] = {
    "StartSession is denied": ({"denied": ["StartSession"]}, {}, "", "Allow ssm:StartSession"),
    "no python3": ({}, {"ssm_python": "/no/python3"}, "", "Install python3"),
    "no sudo": ({}, {}, "sudo: not found", "There is no sudo"),
    "no rule for sudo": ({}, {}, "ssm-user is not in the sudoers file", "Give it a NOPASSWD rule"),
}


@pytest.mark.parametrize(("faults", "data", "sudo", "reason"), NO_SESSION.values(), ids=NO_SESSION)
def test_without_sessions_run_command_takes_over_and_says_so_once(
    emulate: Emulate,
    inventory: Any,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    faults: Any,
    data: Any,
    sudo: str,
    reason: str,
) -> None:
    emulator = emulate([without(tmp_path, sudo)] if sudo else (), **faults)
    host = inventory(**data).inventory.get_host(NAME)
    for _ in range(2):
        assert host.run_shell_command(StringCommand("echo $0"))[0]
    warnings = [r for r in caplog.records if "Falls back to Run Command" in r.getMessage()]
    assert len(warnings) == 1
    assert reason in warnings[0].getMessage()
    assert all(session["has_ended"] for session in emulator.sessions)


def test_run_command_alone_opens_no_session(emulate: Emulate, inventory: Any) -> None:
    emulator = emulate()
    host = inventory(ssm_transport="run-command").inventory.get_host(NAME)
    assert host.run_shell_command(StringCommand("echo sent"))[1].stdout == "sent"
    assert emulator.sessions == []
    assert {call["action"] for call in emulator.calls} == {"SendCommand", "GetCommandInvocation"}


def test_a_host_that_does_not_come_back_is_waited_for_no_longer_than_the_limit(
    emulate: Emulate, inventory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = emulate()
    host = inventory(ssm_return_limit=3).inventory.get_host(NAME)
    host.disconnect()
    emulator.set_faults(not_connected=["*"])
    clock = itertools.count()  # a second passes with every look at it
    monkeypatch.setattr("pyinfra_ssm._reach.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("pyinfra_ssm._reach._LOOK_EVERY", 0.0)
    with pytest.raises(ConnectError, match="TargetNotConnected"):
        host.connect(raise_exceptions=True)
    starts = [call for call in emulator.calls if call["action"] == "StartSession"]
    assert len(starts) == 1 + 4


def test_a_region_of_ones_own_is_the_one_that_is_asked(emulate: Emulate, inventory: Any) -> None:
    emulate()
    hosts = [(NAME, {"ssm_region": "eu-west-1"})]
    connector = inventory(hosts).inventory.get_host(NAME).connector
    assert connector._transport._account._client("ssm").meta.region_name == "eu-west-1"


def test_two_inventories_have_sessions_of_their_own(emulate: Emulate, inventory: Any) -> None:
    emulator = emulate()
    one, other = (inventory().inventory.get_host(NAME) for _ in range(2))
    one.disconnect()
    assert other.run_shell_command(StringCommand("echo still here"))[1].stdout == "still here"
    one.connect(raise_exceptions=True)
    assert one.run_shell_command(StringCommand("echo again"))[1].stdout == "again"
    assert len(emulator.sessions) == 3


def test_a_host_that_breaks_the_protocol_fails_and_is_there_for_the_next_command(
    emulate: Emulate, inventory: Any
) -> None:
    emulator = emulate()
    host = inventory().inventory.get_host(NAME)
    for_the_terminal = "printf '\\036%s\\n' 'AAAA' >/proc/$PPID/fd/1; sleep 1000"
    with pytest.raises(HostError, match=rf"\[{NAME}\] could not run a command: .*frame"):
        host.run_shell_command(StringCommand(for_the_terminal))
    assert host.run_shell_command(StringCommand("echo again"))[1].stdout == "again"
    assert len(emulator.sessions) == 2
