"""Calls to AWS as commands of an operation: made on this machine, when the plan is carried out."""

from collections.abc import Callable

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
            act(host.log)
        except AwsError as error:
            host.log_styled(str(error), fg="red", log_func=logger.error)
            return False
        return True

    call.__name__ = verb  # what `--json` and `--debug-operations` show
    return FunctionCommand(call, [], {})
