"""Non-blocking reads and writes of file descriptors: terminals and pipes in the event loop."""

import asyncio
import os
from collections.abc import Callable


class Descriptor:
    """A file descriptor of ours. A terminal whose other side is gone reads as end of file."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._open = True

    def fileno(self) -> int:
        return self._fd

    async def read(self, size: int) -> bytes:
        """Return what there is, at most `size` bytes, waiting for some; empty at the end."""
        loop = asyncio.get_running_loop()
        while self._open:
            try:
                return os.read(self._fd, size)
            except BlockingIOError:
                await self._ready(loop.add_reader, loop.remove_reader)
            except OSError:  # EIO: Linux says so once the last process has left the terminal
                return b""
        return b""

    async def write(self, data: bytes) -> bool:
        """Write all of `data`, waiting for room; False if nobody reads any more."""
        loop = asyncio.get_running_loop()
        rest = memoryview(data)
        while rest and self._open:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._ready(loop.add_writer, loop.remove_writer)
            except OSError:
                return False
        return not rest

    async def _ready(
        self, add: Callable[[int, Callable[[], None]], None], remove: Callable[[int], bool]
    ) -> None:
        ready = asyncio.Event()
        add(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            if self._open:
                remove(self._fd)

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._fd)
        loop.remove_writer(self._fd)
        os.close(self._fd)
