"""One command on the host: its process group, its streams, its end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
from typing import Any

from pyinfra_ssm.remote.framing import Kind
from pyinfra_ssm.remote.processes import end, family

READ_SIZE = 64 << 10
# After a command has ended: how long its children may stay silent before its output counts as
# whole. A child left in the background keeps the pipes open for ever.
SILENCE = 0.1
# Between asking a command whose time is up to end, and ending it.
MERCY = 1.0
# execve refuses a single argument of 128 KiB and more (MAX_ARG_STRLEN).
LONGEST_ARGUMENT = (128 << 10) - 1


class Command:
    """A command with pipes (or a terminal) of its own, in a session of its own."""

    def __init__(self, request: dict[str, Any], now: float) -> None:
        """`request` has argv, and may have timeout in seconds, terminal, stdin."""
        self.streams: dict[int, Kind] = {}  # what it writes: descriptor -> which stream
        self.stdin: int | None = None
        self.pending = bytearray()  # of its stdin
        self.status: dict[str, Any] | None = None  # how it ended
        self._closing = False
        self._terminal = bool(request.get("terminal"))
        timeout = request.get("timeout")
        self._deadline = now + timeout if timeout else None
        self._timed_out = False
        self._members: set[tuple[int, int]] = set()
        self._heard = now
        arguments = [each.encode("utf-8", "surrogateescape") for each in request["argv"]]
        self._process = self._start(arguments, bool(request.get("stdin")))

    # Starting

    def _start(self, arguments: list[bytes], reads: bool) -> subprocess.Popen[bytes]:
        arguments, kept = _shorten(arguments)
        try:
            if self._terminal:
                return self._start_on_terminal(arguments, kept)
            return self._start_on_pipes(arguments, reads, kept)
        finally:
            for fd in kept:
                os.close(fd)

    def _start_on_pipes(
        self, arguments: list[bytes], reads: bool, kept: list[int]
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=kept,
        )
        assert process.stdout
        assert process.stderr
        self.streams = {
            _own(process.stdout.fileno()): Kind.STDOUT,
            _own(process.stderr.fileno()): Kind.STDERR,
        }
        if process.stdin:
            self.stdin = _own(process.stdin.fileno())
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        return process

    def _start_on_terminal(
        self, arguments: list[bytes], kept: list[int]
    ) -> subprocess.Popen[bytes]:
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(
                arguments,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                pass_fds=kept,
            )
        finally:
            os.close(theirs)
        master = _own(ours)
        os.close(ours)
        self.streams, self.stdin = {master: Kind.STDOUT}, master
        return process

    # Streams

    def feed(self, data: bytes) -> None:
        """Add to its stdin; no data closes it, which on a terminal is control-D."""
        if data:
            self.pending += data
        elif self._terminal:
            self.pending += b"\x04"
        else:
            self._closing = True

    def write_input(self) -> None:
        """Write what its stdin takes now. One that reads no more loses the rest, as in a shell."""
        if self.stdin is None:
            return
        try:
            del self.pending[: os.write(self.stdin, self.pending)]
        except BlockingIOError:
            return
        except OSError:
            self.pending.clear()
            self._closing = True
        if self._closing and not self.pending:
            self.close_input()

    @property
    def wants_input(self) -> bool:
        return self.stdin is not None and bool(self.pending or self._closing)

    def close_input(self) -> None:
        if self.stdin is not None and not self._terminal:
            os.close(self.stdin)
        self.stdin = None

    def read(self, fd: int, now: float) -> bytes:
        """Return what it wrote; b"" closes the stream."""
        try:
            data = os.read(fd, READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno != errno.EIO:  # how a terminal says that nobody has it open
                raise
            data = b""
        self._heard = now
        if not data:
            del self.streams[fd]
            if fd == self.stdin:
                self.stdin = None
            os.close(fd)
        return data

    def take_streams(self) -> list[int]:
        """Hand over what children in the background still write to."""
        self.close_input()
        streams, self.streams = list(self.streams), {}
        return streams

    # Ending

    def ended(self, now: float) -> bool:
        """Whether it has ended and all that it wrote has been read."""
        code = self._process.poll()
        if code is None:
            return False
        if self.status is None:
            self.status = {"signal": -code} if code < 0 else {"status": code}
            self.status["timeout"] = self._timed_out
            self._heard = now
        return not self.streams or (now - self._heard >= SILENCE and not self._has_more())

    def _has_more(self) -> bool:
        poll = select.poll()
        for fd in self.streams:
            poll.register(fd, select.POLLIN)
        return bool(poll.poll(0))

    def due(self, reading: bool) -> float | None:
        """Return when to call on_time() or ended() next, or None; `reading`: if it is read."""
        if self.status is None:
            return self._deadline
        return self._heard + SILENCE if reading else None

    def on_time(self, now: float) -> None:
        """When its time is up, ask it and all it started to end; a second later, end them."""
        if self._deadline is None or now < self._deadline or self.status is not None:
            return
        self._members |= family(self._process.pid)
        end(self._process.pid, self._members, signal.SIGKILL if self._timed_out else signal.SIGTERM)
        self._timed_out = True
        self._deadline = now + MERCY

    def kill(self) -> None:
        end(self._process.pid, family(self._process.pid), signal.SIGKILL)


def _own(fd: int) -> int:
    """Return a copy of `fd` that does not block and no other command inherits."""
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.set_blocking(copy, False)
    return copy


def _shorten(arguments: list[bytes]) -> tuple[list[bytes], list[int]]:
    """Return arguments that execve takes, and the descriptors that they name.

    A script that is too long for an argument is given to its shell as a file without a name.
    """
    too_long = len(arguments) == 3 and len(arguments[2]) > LONGEST_ARGUMENT
    if not too_long or arguments[1] != b"-c" or not hasattr(os, "memfd_create"):
        return arguments, []
    fd = os.memfd_create("script", 0)
    with contextlib.suppress(OSError), open(fd, "wb", closefd=False) as script:
        script.write(arguments[2] + b"\n")
    return [arguments[0], b"/proc/self/fd/%d" % fd], [fd]
