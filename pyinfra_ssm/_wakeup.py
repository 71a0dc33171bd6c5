"""A way to end another thread's select: a pipe, with one byte or more in it when it is time."""

import contextlib
import os


class Wakeup:
    """Wait for it to be readable, then drain() it."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        for fd in (self._reader, self._writer):
            os.set_blocking(fd, False)

    def fileno(self) -> int:
        return self._reader

    def call(self) -> None:
        """Wake whoever waits. Any thread may call it, and a signal handler."""
        with contextlib.suppress(OSError):  # full: it is awake; closed: nobody waits any more
            os.write(self._writer, b"!")

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)

    def close(self) -> None:
        writer, self._writer = self._writer, -1  # the number may soon be another file's
        for fd in (self._reader, writer):
            os.close(fd)
