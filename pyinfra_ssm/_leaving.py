"""Ending every session, whatever ends this process: each would live on until its idle limit."""

import atexit
import contextlib
import signal
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Protocol

import gevent


class Leaver(Protocol):
    """Something that must not be left open."""

    def abandon(self) -> None:
        """Let go of all who wait for it. Called by a signal handler: must not wait."""

    def close(self) -> None:
        """End it, here and there."""


_open: "weakref.WeakSet[Leaver]" = weakref.WeakSet()
_is_watching = False
_is_going = False


def is_going() -> bool:
    """Whether a signal has told this process to end: nothing is begun any more."""
    return _is_going


def register(leaver: Leaver) -> None:
    _open.add(leaver)
    _watch()


def unregister(leaver: Leaver) -> None:
    _open.discard(leaver)


def _watch() -> None:
    """Take part in the handling of signals, from the first session on."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    atexit.register(_close_all)
    # Not in the main thread: then whoever is there has to close what it opened.
    with contextlib.suppress(ValueError):
        _chain(signal.SIGINT)
        for number in (signal.SIGTERM, signal.SIGHUP):  # the latter when a terminal is closed
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _exit)


def _chain(number: int) -> None:
    """Before the handler that is there, let waiting commands go.

    pyinfra's own leaves the running greenlet in a pool that its disconnect_all() then waits for:
    with one host, Ctrl-C would wait for the command's end.
    """
    previous = signal.getsignal(number)

    def handle(number: int, frame: FrameType | None) -> None:
        global _is_going
        # Python's own handler raises KeyboardInterrupt, which somebody may catch and go on.
        _is_going = previous is not signal.default_int_handler
        _abandon_all()
        if callable(previous):
            _in_main_greenlet(lambda: previous(number, frame))

    if callable(previous):
        signal.signal(number, handle)


def _exit(number: int, frame: FrameType | None) -> None:
    """Turn the signal into an ordinary exit, so that what cleans up is run."""
    global _is_going
    _is_going = True
    _abandon_all()
    _in_main_greenlet(lambda: sys.exit(128 + number))


def _in_main_greenlet(leave: Callable[[], object]) -> None:
    """Call what raises an exit so that it is raised where the program can end by it.

    A handler interrupts whichever greenlet runs. An exit in one that is about to take or to give
    back a lock would leave the lock taken, and all others waiting for it. gevent hands to the main
    greenlet what is raised in its loop, where nobody holds one.
    """
    hub = gevent.get_hub()
    if gevent.getcurrent() is hub.parent:
        leave()
    else:
        hub.loop.run_callback_threadsafe(leave)


def _abandon_all() -> None:
    for leaver in list(_open):
        leaver.abandon()


def _close_all() -> None:
    for leaver in list(_open):
        leaver.close()
