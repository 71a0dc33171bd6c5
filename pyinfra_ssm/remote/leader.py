"""The process that the session has started: it writes to the terminal for the one that works."""

from __future__ import annotations

import contextlib
import os

_READ_SIZE = 64 << 10


def step_aside() -> int:
    """Go on in a child with a session of its own; return where it writes, instead of to stdout.

    The agent ends a session by SIGKILL for the process that it has started, then closes the
    terminal, and sudo gives what runs below it no time either once it is killed itself (seen with
    1.9.13 and use_pty): nobody would be left to end the commands. Neither reaches another session,
    which learns of the end from the terminal.
    https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/shell/shell.go
    """
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        os.close(source)
        os.setsid()
        return sink
    os.close(sink)
    os.set_blocking(1, True)
    with contextlib.suppress(OSError):  # the terminal is gone
        pass_on_lines(source, 1)
    os.close(source)
    os.waitpid(child, 0)
    os._exit(0)


def pass_on_lines(source: int, sink: int) -> None:
    """Write what comes from `source` to a terminal, whole lines at once, until it ends.

    Linux lets nobody else write to a terminal during one write. A line in two writes may have a
    broadcast inside, as of wall(1) or of a shutdown: sudo enters its terminal into utmp. To wait
    for room here is to be deaf, so whoever has to hear does not write.
    """
    rest = b""
    while True:
        data = os.read(source, _READ_SIZE)
        if not data:
            return
        lines, newline, rest = (rest + data).rpartition(b"\n")
        view = memoryview(lines + newline)
        while view:
            view = view[os.write(sink, view) :]
