"""Life and death of sessions: what the service, the line and the host can do to them."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
import websocket

from pyinfra_ssm._messages import AgentMessage, PayloadType
from pyinfra_ssm._payloads import OpenDataChannel
from pyinfra_ssm.emulator import DEFAULT_ID, Emulator
from tests.ssm.emulator.client import Client, is_alive, non_interactive

Start = Callable[..., Emulator]


def shell(emulator: Emulator) -> Client:
    client = Client(emulator, "Root-Shell")
    client.expect(b"# ")
    client.send(b"PS1=; echo RE''ADY\n")
    client.expect(b"READY\n")
    return client


def leader(client: Client) -> int:
    """Return the process id of the session's shell."""
    client.send(b"echo pid=$$.\n")
    client.until(lambda: client.text().endswith(b".\n"))
    return int(client.text().rpartition(b"pid=")[2].rstrip(b".\n"))


def test_a_terminated_session_says_so_once_and_its_shell_dies(start: Start) -> None:
    emulator = start()
    client = shell(emulator)
    pid = leader(client)
    client.ssm.terminate_session(SessionId=client.session_id)
    assert client.until_closed() == ""
    assert "TokenValue" not in client.ssm.resume_session(SessionId=client.session_id)
    client.ssm.terminate_session(SessionId=client.session_id)
    emulator.reboot()  # returns once everything of the instance has ended
    assert not is_alive(pid)
    assert [each["has_ended"] for each in emulator.sessions] == [True]


def test_a_wrong_token_opens_nothing(shared: Emulator) -> None:
    client = shell(shared)
    url = shared.endpoint_url.replace("http", "ws") + f"/v1/data-channel/{client.session_id}"
    stranger = websocket.create_connection(url, timeout=10)
    stranger.send(OpenDataChannel("guess", uuid4(), uuid4()).encode())
    assert stranger.recv_data()[0] == websocket.ABNF.OPCODE_CLOSE
    client.send(b"echo st''ill\n")
    client.expect(b"still\n")
    client.close()


def test_a_resumed_session_needs_the_new_token(shared: Emulator) -> None:
    client = shell(shared)
    first = client.ssm.resume_session(SessionId=client.session_id)
    second = client.ssm.resume_session(SessionId=client.session_id)
    assert first["TokenValue"] != second["TokenValue"]
    client.connect(second["StreamUrl"], second["TokenValue"])
    client.send(b"echo back\n")
    client.expect(b"back\n")
    client.close()


def test_input_stays_unacknowledged_while_there_is_no_terminal(start: Start) -> None:
    client = Client(start(terminal_delay_s=3600), "Root-Shell")
    client.send(b"echo early\n")
    client.ssm.terminate_session(SessionId=client.session_id)
    assert client.until_closed() == ""
    assert client.acks == []


def test_frames_that_are_no_messages_are_ignored(shared: Emulator) -> None:
    client = shell(shared)
    frame = AgentMessage("no_such_type", uuid4(), b"?").encode()
    for raw in (b"", b"\0" * 300, frame[:-1], frame):
        client.send_raw(raw)
    client.send(b"echo st''ill\n")
    client.expect(b"still\n")
    client.close()


def test_sockets_are_closed_with_code_1000_and_sessions_live_on(start: Start) -> None:
    emulator = start()
    client = shell(emulator)
    emulator.cut_sockets()
    code, reason = client.closing()
    assert (code, reason) == (1000, b"Bye")
    client.resume()
    client.send(b"echo back\n")
    client.expect(b"back\n")
    client.close()


def test_sockets_are_closed_at_the_age_asked_for(start: Start) -> None:
    client = Client(start(close_every_s=0.2), "Root-Shell")
    assert client.closing()[0] == 1000


def test_a_frame_over_the_limit_closes_the_socket(start: Start) -> None:
    client = Client(start(max_frame_bytes=1000), "Root-Shell")
    client.send(b"#" * 2000)
    assert client.closing()[0] == 1009


def test_an_idle_session_is_ended_with_a_reason(start: Start) -> None:
    emulator = start()
    client = shell(emulator)
    emulator.set_faults(idle_timeout_s=0.3)
    assert "inactivity" in client.until_closed()


def test_a_session_is_ended_at_its_maximum_age(start: Start) -> None:
    emulator = start()
    client = shell(emulator)
    emulator.set_faults(max_session_s=0.3)
    assert "maximum duration" in client.until_closed()


def test_an_agent_that_restarts_refuses_sessions_but_keeps_those_it_has(start: Start) -> None:
    emulator = start()
    client = shell(emulator)
    emulator.restart_agent(seconds=3600)
    client.send(b"echo st''ill\n")
    client.expect(b"still\n")
    with pytest.raises(client.ssm.exceptions.TargetNotConnected):
        client.ssm.start_session(Target=DEFAULT_ID)
    emulator.restart_agent(seconds=0)
    shell(emulator).close()


def test_a_reboot_ends_everything_without_a_word(start: Start) -> None:
    emulator = start()
    client = shell(emulator)
    client.send(b"setsid sleep 60 & echo pid=$!.\n")
    client.until(lambda: client.text().endswith(b".\n"))
    child = int(client.text().rpartition(b"pid=")[2].rstrip(b".\n"))
    emulator.reboot(seconds=0)
    with pytest.raises((websocket.WebSocketConnectionClosedException, ConnectionError)):
        client.until(lambda: client.closed is not None)
    assert client.closed is None
    assert not is_alive(child)
    assert "TokenValue" not in client.ssm.resume_session(SessionId=client.session_id)
    shell(emulator).close()


def test_reboot_as_a_command_reboots_the_instance_and_not_this_machine(start: Start) -> None:
    emulator = start(reboot_s=3600)
    client = shell(emulator)
    client.send(b"shutdown -h now; reboot\n")
    with pytest.raises((websocket.WebSocketConnectionClosedException, ConnectionError)):
        client.until(lambda: client.closed is not None)
    assert b"only reboot is emulated" in client.text()
    assert client.ssm.get_connection_status(Target=DEFAULT_ID)["Status"] == "notconnected"


def test_a_bad_line_loses_and_repeats_but_resends_repair_the_output(start: Start) -> None:
    emulator = start()
    client = shell(emulator)
    emulator.set_faults(loss=0.2, duplication=0.2, reordering=0.2, seed=3)
    for _ in range(50):  # enough for one to arrive; the command runs once all the same
        client.repeat(b"seq 1 30; echo E''ND\n")
    numbers = b"".join(b"%d\n" % number for number in range(1, 31))
    assert client.expect(b"END\n") == b"# READY\n" + numbers + b"END\n"
    client.close()


_STEPS = """
cd {folder}
echo one; until [ -e two ]; do sleep 0.02; done
echo two; touch wrote2; until [ -e three ]; do sleep 0.02; done
echo three; exit 4
"""


def test_separate_streams_lose_what_is_written_while_the_socket_is_cut(
    start: Start, tmp_path: Path
) -> None:
    """As recorded in 07b, with the command's steps made certain: each waits for a file."""
    emulator = start()
    script = tmp_path / "script"
    script.write_text(_STEPS.format(folder=tmp_path))
    client = non_interactive(emulator, f"sh {script}")
    client.expect(b"one\n")
    emulator.cut_sockets()
    (tmp_path / "two").touch()
    _wait_for(emulator, tmp_path / "wrote2")
    client.resume()
    client.expect(b"one\ntwo\n")  # was being read when the cut came, so it is sent again
    (tmp_path / "three").touch()
    assert client.until_closed() == ""
    assert client.text() == b"one\ntwo\n"
    assert client.text(PayloadType.EXIT_CODE) == b"EXIT_CODE: 4"


def _wait_for(emulator: Emulator, file: Path) -> None:
    """Wait until the command has made a file, and the agent has had a turn to read its output."""
    while not file.exists():
        assert emulator.sessions
    assert emulator.sessions
