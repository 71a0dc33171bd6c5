"""The program on the host by itself, on a terminal like the agent's: its start and its end."""

import json
import os
import pty
import pwd
import re
import select
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm._program import (
    fetching_command,
    ready_marker,
    serving_command,
    serving_program,
)
from pyinfra_ssm.remote.framing import ArmourDecoder, Frame, Kind, encode

LIMIT = 30  # seconds for anything to happen


class Terminal:
    """The agent's side of a terminal, with a session's command on the other."""

    def __init__(self, command: str) -> None:
        self._near, far = pty.openpty()
        self.name = os.ttyname(far)
        self.process = subprocess.Popen(
            ["sh", "-c", command],
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "HOME": "/", "SUDO_USER": "ssm-user"},
        )
        os.close(far)
        self._decoder = ArmourDecoder()
        self._frames: list[Frame] = []

    def read(self) -> bytes:
        ready, _, _ = select.select([self._near], [], [], LIMIT)
        assert ready, "the program said nothing"
        return os.read(self._near, 1024)

    def read_until(self, mark: bytes) -> bytes:
        data = b""
        while mark not in data:
            data += self.read()
        return data

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._near, data) :]

    def frame(self) -> Frame:
        while not self._frames:
            self._frames = self._decoder.feed(self.read())
        return self._frames.pop(0)

    def hang_up(self) -> None:
        if self._near >= 0:
            os.close(self._near)
        self._near = -1


@pytest.fixture
def serving() -> Iterator[Any]:
    """A program that has said hello."""
    terminal = Terminal(serving_command("nonce", sys.executable))
    terminal.read_until(ready_marker("nonce"))
    terminal.write(serving_program())
    assert terminal.frame().kind == Kind.HELLO
    yield terminal
    terminal.hang_up()
    terminal.process.wait(LIMIT)


def run(terminal: Terminal, ident: int, command: str) -> None:
    body = json.dumps({"argv": ["sh", "-c", command]}).encode()
    terminal.write(encode(Frame(Kind.RUN, ident, body)))


def test_the_marker_is_not_in_the_command_that_an_echo_shows() -> None:
    assert ready_marker("abc") not in serving_command("abc").encode()
    assert b"ready abc" not in serving_command("abc").encode()


def test_the_command_lines_hold_nothing_that_a_document_or_a_line_cannot() -> None:
    for command in (serving_command("abc"), fetching_command("/x", None)):
        assert "\n" not in command
        assert "{{" not in command  # how documents mark their parameters
        # Agents expand these where the parameter is a part of the document's command only:
        # https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/framework/docparser/parameters/parameters.go
        assert not re.search(r"\$[\w{$]", command)
        assert len(command) < 16_384


def test_what_others_write_to_the_terminal_lands_between_the_frames(serving: Any) -> None:
    """As wall(1) does, and systemd before a shutdown: sudo enters its terminal into utmp."""
    is_over = threading.Event()

    def wall() -> None:
        with suppress(OSError), open(serving.name, "wb", buffering=0) as terminal:
            while not is_over.is_set():
                terminal.write(b"\r\nBroadcast\r\n")

    run(serving, 1, "head -c 2000000 /dev/urandom")
    content = b""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(wall)
        try:
            while (frame := serving.frame()).kind == Kind.STDOUT:
                content += frame.body
        finally:
            is_over.set()
            serving.hang_up()
    assert (frame.kind, len(content)) == (Kind.EXITED, 2_000_000)


def test_it_leaves_when_told_to(serving: Any) -> None:
    serving.write(encode(Frame(Kind.LEAVE, 0)))
    assert serving.process.wait(LIMIT) == 0


def test_a_hang_up_ends_it_and_what_it_runs(serving: Any, tmp_path: Path) -> None:
    fifo, survivor = tmp_path / "fifo", tmp_path / "survivor"
    os.mkfifo(fifo)
    run(serving, 1, f"echo $$ >{fifo}; sleep 1000; touch {survivor}")
    running = int(fifo.read_text())
    serving.hang_up()
    serving.process.wait(LIMIT)
    # The reader sees the end of the pipe once the last writer, the command's shell, is gone.
    assert not Path(f"/proc/{running}/cwd").exists()
    assert not survivor.exists()


def test_a_session_whose_leader_is_killed_takes_its_commands_along(
    serving: Any, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    run(serving, 1, f"exec 3>{fifo}; sleep 1000")
    with fifo.open("rb") as reader:  # which waits for the command to open it
        serving.process.kill()  # as the agent does, before it closes the terminal
        serving.hang_up()
        ready, _, _ = select.select([reader], [], [], LIMIT)
        assert ready, "the command runs on"
        assert reader.read() == b""


def test_a_hang_up_in_the_middle_of_a_file_leaves_no_part_of_it(
    serving: Any, tmp_path: Path
) -> None:
    body = json.dumps({"path": str(tmp_path / "target"), "user": None}).encode()
    serving.write(encode(Frame(Kind.PUT, 1, body)))
    serving.write(encode(Frame(Kind.CONTENT, 1, b"half")))
    serving.write(encode(Frame(Kind.PING, 2)))
    assert serving.frame().kind == Kind.PONG
    (part,) = tmp_path.iterdir()
    assert part.stat().st_mode & 0o777 == 0o600
    serving.hang_up()
    serving.process.wait(LIMIT)
    assert list(tmp_path.iterdir()) == []


def test_content_that_was_damaged_is_refused(serving: Any, tmp_path: Path) -> None:
    body = json.dumps({"path": str(tmp_path / "target"), "user": None}).encode()
    ending = json.dumps({"size": 4, "sha256": "0" * 64}).encode()
    serving.write(encode(Frame(Kind.PUT, 1, body)) + encode(Frame(Kind.CONTENT, 1, b"half")))
    serving.write(encode(Frame(Kind.CONTENT_END, 1, ending)))
    failed = serving.frame()
    assert failed.kind == Kind.FAILED
    assert "damaged" in json.loads(failed.body)["text"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_our_protocol_ends_it(serving: Any) -> None:
    serving.write(b"\xff" * 64)
    assert serving.process.wait(LIMIT) == 0


def test_a_request_that_makes_no_sense_is_answered(serving: Any) -> None:
    serving.write(encode(Frame(Kind.RUN, 1, b'{"argv": 7}')))
    serving.write(encode(Frame(Kind.PUT, 2, b"not JSON")))
    answers = {frame.ident: frame.kind for frame in (serving.frame(), serving.frame())}
    assert answers == {1: Kind.FAILED, 2: Kind.FAILED}


def test_a_command_is_cancelled(serving: Any, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    run(serving, 1, f"echo >{fifo}; sleep 1000")
    fifo.read_text()
    serving.write(encode(Frame(Kind.CANCEL, 1)))
    exited = serving.frame()
    assert json.loads(exited.body)["signal"] == 9


def test_one_file_is_printed_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content" * 50_000)
    command = fetching_command(str(tmp_path / "file"), None, sys.executable)
    printed = subprocess.run(shlex.split(command), capture_output=True, check=True).stdout
    *contents, ending = ArmourDecoder().feed(printed)
    assert b"".join(frame.body for frame in contents) == b"content" * 50_000
    assert json.loads(ending.body)["size"] == 350_000


def test_a_relative_name_is_the_same_file_whichever_way_it_is_fetched(tmp_path: Path) -> None:
    """That is one at home, and not where a session of its own begins."""
    (tmp_path / "file").write_bytes(b"the one")
    (tmp_path / "elsewhere").mkdir()
    name = os.path.relpath(tmp_path / "file", pwd.getpwuid(os.getuid()).pw_dir)
    command = shlex.split(fetching_command(name, None, sys.executable))
    printed = subprocess.run(command, cwd=tmp_path / "elsewhere", capture_output=True, check=True)
    content, _ = ArmourDecoder().feed(printed.stdout)
    assert content.body == b"the one"
