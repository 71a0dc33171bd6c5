"""Processes of a session or of Run Command, started on a machine and ended as the agent does."""

import asyncio
import fcntl
import os
import signal
import struct
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress

from pyinfra_ssm.emulator.descriptors import Descriptor
from pyinfra_ssm.emulator.machines import Container, Place, kill_as_root, signal_in_container

Process = asyncio.subprocess.Process


async def start(
    place: Place, argv: Sequence[str], *, stdout: int, stderr: int, cwd: str = "/"
) -> Process:
    """Start `argv` in a process group of its own, stdin at end of file."""
    return await asyncio.create_subprocess_exec(
        *place.command(argv, cwd=cwd),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env=place.environment(),
        start_new_session=True,
    )


async def start_in_terminal(place: Place, argv: Sequence[str]) -> tuple[Process, Descriptor]:
    """Start `argv` on a new terminal; return the process and the terminal's near side."""
    near, far = os.openpty()
    if isinstance(place.machine, Container):
        # The engine makes a second terminal, inside. This one must not touch what passes, also
        # before the engine has come round to setting it raw.
        tty.setraw(far)
    try:
        process = await asyncio.create_subprocess_exec(
            *place.command(argv, terminal=True),
            stdin=far,
            stdout=far,
            stderr=far,
            env=place.environment(),
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
    except BaseException:
        os.close(near)
        raise
    finally:
        os.close(far)
    return process, Descriptor(near)


def _take_terminal() -> None:
    """Make stdin the controlling terminal of the new process, so that a hang-up reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def set_size(terminal: Descriptor, columns: int, rows: int) -> None:
    """Set the size of a terminal, in characters."""
    size = struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0)
    fcntl.ioctl(terminal.fileno(), termios.TIOCSWINSZ, size)


async def send_signal(place: Place, process: Process, number: int) -> None:
    """Send a signal to the command itself, not to its children."""
    if isinstance(place.machine, Container):
        await signal_in_container(place, number)
        return
    try:
        _signal(process, number)
    except PermissionError:  # it has become root's, by sudo
        await kill_as_root(place.machine, process.pid)


async def kill(place: Place, process: Process) -> None:
    """Kill the command as the agent does: the direct child alone, with SIGKILL."""
    if process.returncode is not None:
        return
    await send_signal(place, process, signal.SIGKILL)
    if isinstance(place.machine, Container):
        _signal(process, signal.SIGKILL)  # the engine's client: the command may not be there yet
    await process.wait()


def _signal(process: Process, number: int) -> None:
    """Signal a child without asking first whether it lives, as its own methods do.

    To ask is to take its exit status from asyncio, which then complains and reports 255.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
