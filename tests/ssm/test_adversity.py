"""Sessions over a bad line."""

import io
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm._account import Account
from pyinfra_ssm._errors import HostTimeout, NoProgram, SessionEnded
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import Ending, Request
from pyinfra_ssm.emulator import DEFAULT_ID, Instance
from tests.ssm.conftest import OPTIONS, Emulate, Start, account


def test_nothing_is_lost_repeated_or_run_twice_on_a_bad_line(start: Start, tmp_path: Path) -> None:
    host = start(loss=0.05, duplication=0.05, reordering=0.05, close_every_s=0.7, delay_ms=1)
    numbers = [str(number) for number in range(60)]
    for number in numbers:
        ending, stdout, _ = host.run(f"echo {number} >>{tmp_path}/ran; echo {number}")
        assert (ending, stdout.decode()) == (Ending(0), f"{number}\n")
    assert (tmp_path / "ran").read_text().split() == numbers
    content = random.Random(1).randbytes(500_000)
    host.transport.put(str(tmp_path / "file"), io.BytesIO(content), None)
    assert (tmp_path / "file").read_bytes() == content
    assert len(host.emulator.sessions) == 1


def test_a_first_socket_that_is_refused_is_tried_again_with_the_token_that_is_not_spent(
    start: Start,
) -> None:
    host = start(refuse_sockets=2)
    assert host.run("echo up")[1] == b"up\n"
    assert [call["action"] for call in host.emulator.calls] == ["StartSession"]


def test_a_socket_that_is_cut_while_a_command_runs_is_replaced(
    start: Start, tmp_path: Path
) -> None:
    host = start()
    fifo = tmp_path / "fifo"
    host.run(f"mkfifo {fifo}")
    output = []
    running = host.transport.begin(Request(f"cat {fifo}; echo after"))
    host.emulator.cut_sockets()
    fifo.write_text("before\n")
    assert running.finish(lambda _, data: output.append(data)) == Ending(0)
    assert b"".join(output) == b"before\nafter\n"
    assert [call["action"] for call in host.emulator.calls].count("ResumeSession") >= 1


def test_a_session_that_the_service_ends_takes_its_command_along(
    start: Start, tmp_path: Path
) -> None:
    host = start()
    fifo = tmp_path / "fifo"
    host.run(f"mkfifo {fifo}")
    running = host.transport.begin(Request(f"exec 3>{fifo}; sleep 1000"))
    with fifo.open("rb") as reader:  # which waits for the command to open it
        (session,) = host.emulator.sessions
        host.transport._account.terminate_session(session["session_id"])
        assert reader.read() == b""
    with pytest.raises(SessionEnded, match="the service closed the session"):
        running.finish(lambda *_: None)


def test_a_socket_that_is_not_listened_to_is_not_taken_for_dead(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyinfra_ssm._liveness.SOCKET_PATIENCE", 1.0)
    monkeypatch.setattr("pyinfra_ssm._host_program.PING_EVERY", 0.1)
    monkeypatch.setattr("pyinfra_ssm._host_program.BACKLOG_LIMIT", 1000)
    monkeypatch.setattr("pyinfra_ssm._session._LOOK_EVERY", 0.1)
    host = start()
    running = host.transport.begin(Request("head -c 100000 /dev/zero"))
    with pytest.raises(HostTimeout):
        host.transport._session.wait_for(lambda: None, 2.5)
    output: list[bytes] = []
    assert running.finish(lambda _, data: output.append(data)) == Ending(0)
    assert b"".join(output) == bytes(100_000)
    assert "ResumeSession" not in [call["action"] for call in host.emulator.calls]


def test_a_host_that_is_gone_is_given_up_although_its_session_is_resumed(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, seconds in {
        "_liveness.SOCKET_PATIENCE": 0.5,
        "_liveness.HOST_PATIENCE": 2.0,
        "_liveness.NEW_SOCKET_PATIENCE": 0.4,
        "_host_program.PING_EVERY": 0.2,
        "_session._LOOK_EVERY": 0.1,
    }.items():
        monkeypatch.setattr(f"pyinfra_ssm.{name}", seconds)
    host = start(reboot_noticed=False)
    fifo = tmp_path / "fifo"
    host.run(f"mkfifo {fifo}")
    running = host.transport.begin(Request(f"echo >{fifo}; sleep 1000"))
    fifo.read_text()
    host.emulator.reboot(seconds=0.0)
    with pytest.raises(SessionEnded, match="stopped answering"):
        running.finish(lambda *_: None)
    assert "ResumeSession" in [call["action"] for call in host.emulator.calls]


def test_a_service_that_closes_each_socket_at_once_is_not_stormed(
    emulate: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyinfra_ssm._session_transport._OPEN_LIMIT", 2.0)
    emulator = emulate(close_every_s=0.0)
    with pytest.raises(NoProgram, match="closed by the service: 1000 Bye"):
        SessionTransport(account(), DEFAULT_ID, OPTIONS).open()
    assert len(emulator.calls) < 15


def test_a_service_that_passes_small_frames_only_gets_small_frames(
    start: Start, tmp_path: Path
) -> None:
    host = start(max_frame_bytes=2000)
    content = random.Random(1).randbytes(400_000)
    host.transport.put(str(tmp_path / "file"), io.BytesIO(content), None)
    assert (tmp_path / "file").read_bytes() == content
    assert host.transport._account.payload_size == 1024


def test_a_service_that_passes_large_frames_gets_large_frames(start: Start, tmp_path: Path) -> None:
    host = start()
    content = random.Random(1).randbytes(400_000)
    host.transport.put(str(tmp_path / "file"), io.BytesIO(content), None)
    assert (tmp_path / "file").read_bytes() == content
    assert host.transport._account.payload_size == 16_384


def test_a_download_whose_fast_way_is_closed_takes_the_slow_one(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"line\n" * 100_000)
    host = start(documents={"AWS-StartNonInteractiveCommand": NOTHING})
    with (tmp_path / "sink").open("w+b") as sink:
        host.transport.get(str(tmp_path / "file"), sink, None)
    assert (tmp_path / "sink").read_bytes() == b"line\n" * 100_000


def test_a_large_download_asks_for_separate_streams_as_the_document_allows(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"line\n" * 100_000)
    host = start()
    with (tmp_path / "sink").open("w+b") as sink:
        host.transport.get(str(tmp_path / "file"), sink, None)
    asked = [c["parameters"] for c in host.emulator.calls if c["action"] == "StartSession"]
    separate = asked[1]["Parameters"]["separateOutputStream"]
    assert separate == ["true"]  # the document's other word is "false"


def test_a_large_download_takes_root_where_its_own_session_is_not_roots(
    start: Start, tmp_path: Path
) -> None:
    """As with a document with runAsElevated in ssm_document, and AWS's own for the downloads."""
    (tmp_path / "file").write_bytes(b"line\n" * 100_000)
    fakes = {"id": "echo 1000", "sudo": f'echo "$0 $1" >>{tmp_path}/log; shift; exec "$@"'}
    for name, body in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    host = start(instances=[Instance(environment={"PATH": path})])
    (tmp_path / "log").unlink()
    with (tmp_path / "sink").open("w+b") as sink:
        host.transport.get(str(tmp_path / "file"), sink, None)
    assert (tmp_path / "log").read_text() == f"{tmp_path}/sudo -n\n"


def test_a_download_while_the_agent_restarts_does_not_slow_down_the_next(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"line\n" * 100_000)
    host = start()
    for away, sessions in (["*"], 1), ([], 2):
        host.emulator.set_faults(not_connected=away)
        with (tmp_path / "sink").open("w+b") as sink:
            host.transport.get(str(tmp_path / "file"), sink, None)
        assert (tmp_path / "sink").read_bytes() == b"line\n" * 100_000
        assert len(host.emulator.sessions) == sessions


NOTHING = {
    "schemaVersion": "1.0",
    "sessionType": "NonInteractiveCommands",
    "parameters": {"command": {"type": "String"}, "separateOutputStream": {"type": "String"}},
    "properties": {"linux": {"commands": "true", "separateOutputStream": "True"}},
}


def test_what_is_asked_in_a_session_is_in_no_api_call(start: Start, tmp_path: Path) -> None:
    host = start()
    host.run("echo hunter2", stdin=b"hunter2")
    host.transport.put(str(tmp_path / "hunter2"), io.BytesIO(b"hunter2"), None)
    assert "hunter2" not in repr(host.emulator.calls)


def test_a_socket_that_falls_silent_is_found_out_by_a_ping_and_replaced(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service is away: it neither answers nor closes."""
    monkeypatch.setattr("pyinfra_ssm._liveness.PING_EVERY", 0.2)
    monkeypatch.setattr("pyinfra_ssm._liveness.SOCKET_PATIENCE", 0.5)
    monkeypatch.setattr("pyinfra_ssm._session._LOOK_EVERY", 0.1)
    asked, resume = threading.Event(), Account.resume_session

    def note(account: Account, *arguments: Any) -> Any:
        asked.set()
        return resume(account, *arguments)

    monkeypatch.setattr(Account, "resume_session", note)
    host = start()
    host.emulator.process.send_signal(signal.SIGSTOP)
    try:
        assert asked.wait(30), "nobody noticed"
    finally:
        host.emulator.process.send_signal(signal.SIGCONT)
    assert host.run("echo back")[1] == b"back\n"
    assert len(host.emulator.sessions) == 1


def test_a_service_that_is_stuck_holds_up_no_end(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the call that ends a session, and does not answer."""
    monkeypatch.setattr("pyinfra_ssm._session.SOCKET_PATIENCE", 0.5)
    host = start()
    session = host.transport._session
    host.emulator.process.send_signal(signal.SIGSTOP)
    try:
        host.transport.close()
        assert session._thread.is_alive()  # it still waits for the answer
    finally:
        host.emulator.process.send_signal(signal.SIGCONT)
    session._thread.join(30)
    assert [each["has_ended"] for each in host.emulator.sessions] == [True]
