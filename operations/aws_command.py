"""Calls to AWS as commands of an operation: made on this machine, when the plan is carried out."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import gevent
from pyinfra import logger
from pyinfra.api.command import FunctionCommand
from pyinfra.api.host import Host
from pyinfra.api.state import State

from facts.aws import AwsError

Say = Callable[[str], None]


def aws_command(verb: str, act: Callable[[Say], None]) -> FunctionCommand:
    """Return a command that calls `act` with a way to report progress.

    pyinfra calls a function with these two arguments in the greenlet of the host, and takes
    False for failure; an exception would be shown as a traceback.
    """

    def call(state: State, host: Host) -> bool:
        try:
            with _ended_by_interrupt(verb):
                act(host.log)
        except AwsError as error:
            host.log_styled(str(error), fg="red", log_func=logger.error)
            return False
        return True

    call.__name__ = verb  # what `--json` and `--debug-operations` show
    return FunctionCommand(call, [], {})


class _Interrupted(BaseException):
    """Ctrl-C. No Exception: botocore would take that for a hiccup of the network and ask again."""


@contextmanager
def _ended_by_interrupt(verb: str) -> Iterator[None]:
    """Have Ctrl-C end what runs here, and not only once it is done.

    pyinfra itself says that it exits, and then waits for this greenlet: to disconnect it needs the
    one place in its pool that this holds. Seen with 3.10.
    """
    here = gevent.getcurrent()

    def stop(signum: int, frame: object) -> None:
        gevent.kill(here, _Interrupted())

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    except _Interrupted:
        raise AwsError(
            f"stopped by Ctrl-C while AWS was asked to {verb}: what it has begun goes on there, "
            "and the next run finds it"
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)
