"""The loop on the host: frames in, frames out, commands and files between."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pyinfra_ssm.remote.commands import READ_SIZE, Command
from pyinfra_ssm.remote.files import Incoming, Outgoing, describe_failure
from pyinfra_ssm.remote.framing import CHUNK, Decoder, Frame, FramingError, Kind, armour
from pyinfra_ssm.remote.leader import step_aside
from pyinfra_ssm.remote.surroundings import settle

# Output that waits for the terminal. Beyond it nothing more is read from commands and files.
OUTBOX_LIMIT = 4 * CHUNK
# Commands at once; the others wait. Facts asked for in advance come by the dozen.
MOST_AT_ONCE = 16
# The agent sends what it reads from the terminal in messages of at most 1,024 bytes and pauses
# for a millisecond after each, so a little output waits that long for the end that often follows.
SMALL = 1024
COMPANY = 0.001  # seconds
# Pipes of children left in the background that are emptied, so that those children go on.
MOST_ORPHANS = 64

# What a request can run into: the system says no, or it is not what the connector sends.
REFUSED = (OSError, KeyError, ValueError, TypeError, AttributeError)


class Program:
    """Everything that one session has on this host."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink
        self._decoder = Decoder()
        self._outbox = bytearray()
        self._flush_at = 0.0
        self._waiting: deque[tuple[int, dict[str, Any]]] = deque()
        self._early: dict[int, list[bytes]] = {}  # stdin of those that wait
        self._commands: dict[int, Command] = {}
        self._incoming: dict[int, Incoming] = {}
        self._outgoing: dict[int, Outgoing] = {}
        self._orphans: deque[int] = deque()
        self._leaving = False
        self._awake, wake = os.pipe()
        # Not the source: it is the terminal, and the leader's too, which writes in whole lines.
        for fd in (sink, self._awake, wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(self, "_leaving", True))

    def run(self) -> None:
        """Serve until the terminal is gone or we are told to leave; take running commands along."""
        self._send(Kind.HELLO, 0)
        try:
            while not self._leaving:
                self._turn()
        finally:
            for command in self._commands.values():
                command.kill()
            for incoming in self._incoming.values():
                incoming.abandon()

    # One turn of the loop

    def _turn(self) -> None:
        actions = self._actions()
        poll = select.poll()
        for fd, (events, _) in actions.items():
            poll.register(fd, events)
        for fd, happened in poll.poll(self._patience()):
            actions[fd][1](happened)
        now = time.monotonic()
        for command in list(self._commands.values()):
            command.on_time(now)
        self._report_ends(now)
        self._start_waiting(now)
        self._send_files()

    def _actions(self) -> dict[int, tuple[int, Callable[[int], None]]]:
        """Return what to wait for: descriptor -> (events, what to do then)."""
        actions: dict[int, tuple[int, Callable[[int], None]]] = {
            self._source: (select.POLLIN, self._on_input),
            self._awake: (select.POLLIN, self._on_signal),
        }
        if self._outbox and self._flush_at <= time.monotonic():
            actions[self._sink] = (select.POLLOUT, self._on_room)
        for fd in self._orphans:
            actions[fd] = (select.POLLIN, self._orphan_reader(fd))
        for ident, command in self._commands.items():
            if len(self._outbox) < OUTBOX_LIMIT:
                for fd in command.streams:
                    actions[fd] = (select.POLLIN, self._reader(ident, command, fd))
            if command.wants_input and command.stdin is not None:
                actions[command.stdin] = self._with_writer(actions.get(command.stdin), command)
        return actions

    def _reader(self, ident: int, command: Command, fd: int) -> Callable[[int], None]:
        def read(_: int) -> None:
            kind = command.streams[fd]
            data = command.read(fd, time.monotonic())
            if data:
                self._send(kind, ident, data)

        return read

    @staticmethod
    def _with_writer(
        reads: tuple[int, Callable[[int], None]] | None, command: Command
    ) -> tuple[int, Callable[[int], None]]:
        def act(happened: int) -> None:
            if happened & (select.POLLOUT | select.POLLERR):
                command.write_input()
            if reads and happened & (select.POLLIN | select.POLLHUP):
                reads[1](happened)

        return (reads[0] if reads else 0) | select.POLLOUT, act

    def _orphan_reader(self, fd: int) -> Callable[[int], None]:
        def read(_: int) -> None:
            if self._drain(fd):
                self._orphans.remove(fd)
                os.close(fd)

        return read

    def _on_signal(self, _: int) -> None:
        self._drain(self._awake)

    @staticmethod
    def _drain(fd: int) -> bool:
        """Read and forget; return whether the other end is closed."""
        try:
            return not os.read(fd, READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _patience(self) -> float | None:
        """Return for how many milliseconds nothing has to be done unasked."""
        reading = len(self._outbox) < OUTBOX_LIMIT
        if self._outgoing and reading:
            return 0
        dues = [command.due(reading) for command in self._commands.values()]
        if self._outbox and self._flush_at > time.monotonic():
            dues.append(self._flush_at)
        first = min((due for due in dues if due is not None), default=None)
        return None if first is None else max(0.0, first - time.monotonic()) * 1000

    # Frames in

    def _on_input(self, _: int) -> None:
        try:
            data = os.read(self._source, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leaving = True
            return
        for frame in self._decoder.feed(data):
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        ident = frame.ident
        try:
            if frame.kind == Kind.RUN:
                self._waiting.append((ident, json.loads(frame.body)))
            elif frame.kind == Kind.INPUT:
                self._take_input(ident, frame.body)
            elif frame.kind == Kind.PUT:
                self._incoming[ident] = Incoming(json.loads(frame.body))
            elif frame.kind == Kind.CONTENT and ident in self._incoming:
                self._incoming[ident].write(frame.body)
            elif frame.kind == Kind.CONTENT_END and ident in self._incoming:
                self._store(ident, json.loads(frame.body))
            elif frame.kind == Kind.GET:
                self._open(ident, json.loads(frame.body))
            elif frame.kind == Kind.CANCEL:
                self._cancel(ident)
            elif frame.kind == Kind.PING:
                self._send(Kind.PONG, ident)
            elif frame.kind == Kind.LEAVE:
                self._leaving = True
        except REFUSED as error:
            self._fail(ident, error)

    def _take_input(self, ident: int, data: bytes) -> None:
        if ident in self._commands:
            self._commands[ident].feed(data)
        elif any(ident == waiting for waiting, _ in self._waiting):
            self._early.setdefault(ident, []).append(data)

    def _store(self, ident: int, ending: dict[str, Any]) -> None:
        self._incoming[ident].finish(ending["size"], ending["sha256"])
        del self._incoming[ident]
        self._send(Kind.STORED, ident)

    def _open(self, ident: int, request: dict[str, Any]) -> None:
        outgoing = Outgoing(request)
        if outgoing.size > request["limit"]:
            outgoing.close()
            self._send_json(Kind.FAILED, ident, {"large": outgoing.size, "text": "large file"})
        else:
            self._outgoing[ident] = outgoing

    def _cancel(self, ident: int) -> None:
        if ident in self._commands:
            self._commands[ident].kill()
        if ident in self._incoming:
            self._incoming.pop(ident).abandon()
        if ident in self._outgoing:
            self._outgoing.pop(ident).close()
        self._early.pop(ident, None)
        self._waiting = deque(each for each in self._waiting if each[0] != ident)

    # Frames out

    def _report_ends(self, now: float) -> None:
        for ident, command in list(self._commands.items()):
            if command.ended(now):
                self._orphans += command.take_streams()
                while len(self._orphans) > MOST_ORPHANS:
                    os.close(self._orphans.popleft())
                del self._commands[ident]
                self._send_json(Kind.EXITED, ident, command.status or {})

    def _start_waiting(self, now: float) -> None:
        while self._waiting and len(self._commands) < MOST_AT_ONCE:
            ident, request = self._waiting.popleft()
            early = self._early.pop(ident, [])
            try:
                self._commands[ident] = Command(request, now)
            except REFUSED as error:
                self._fail(ident, error)
                continue
            for data in early:
                self._commands[ident].feed(data)

    def _send_files(self) -> None:
        for ident, outgoing in list(self._outgoing.items()):
            if len(self._outbox) >= OUTBOX_LIMIT:
                return
            try:
                data = outgoing.read()
            except OSError as error:
                self._outgoing.pop(ident).close()
                self._fail(ident, error)
                continue
            if data:
                self._send(Kind.CONTENT, ident, data)
            else:
                self._outgoing.pop(ident).close()
                self._send_json(Kind.CONTENT_END, ident, outgoing.ending())

    def _fail(self, ident: int, error: Exception) -> None:
        if ident in self._incoming:
            self._incoming.pop(ident).abandon()
        self._send_json(Kind.FAILED, ident, describe_failure(error))

    def _send_json(self, kind: Kind, ident: int, body: dict[str, Any]) -> None:
        self._send(kind, ident, json.dumps(body).encode())

    def _send(self, kind: Kind, ident: int, body: bytes = b"") -> None:
        self._outbox += armour(Frame(kind, ident, body))
        small = len(self._outbox) < SMALL and kind in (Kind.STDOUT, Kind.STDERR)
        self._flush_at = time.monotonic() + COMPANY if small else 0.0
        if not small:
            self._on_room(0)

    def _on_room(self, _: int) -> None:
        try:
            del self._outbox[: os.write(self._sink, self._outbox)]
        except BlockingIOError:
            return
        except OSError:
            self._leaving = True


def main() -> None:
    sink = step_aside()
    settle()
    program = Program(0, sink)
    with contextlib.suppress(FramingError):  # the connector is gone or is not ours
        program.run()
    sys.stdout = None  # its flush at exit would fail on a dead terminal
