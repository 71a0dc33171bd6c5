"""An emulated host at a distance, and an open connection to it."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyinfra_ssm._account import Account
from pyinfra_ssm._session import new_lock, real_waiting
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import SessionOptions
from pyinfra_ssm.emulator import DEFAULT_ID, Emulator, Faults

ONE_WAY_MS = 20.0  # the targets are for a round trip of twice this
ROUND_TRIP = 2 * ONE_WAY_MS / 1000  # seconds

# The interpreter itself: a version manager's python3 is a shell script that takes its own time.
PYTHON = getattr(sys, "_base_executable", sys.executable)
OPTIONS = SessionOptions(
    "AWS-StartInteractiveCommand", "AWS-StartNonInteractiveCommand", PYTHON, payload_size=0
)


@contextmanager
def surroundings(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the length of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def transport(faults: Faults) -> Iterator[SessionTransport]:
    """Yield a transport, not yet open, to this machine through the emulator."""
    with Emulator(faults) as emulator, surroundings(emulator.environment):
        account = Account(None, None, real_waiting, new_lock())
        here = SessionTransport(account, DEFAULT_ID, OPTIONS)
        try:
            yield here
        finally:
            here.close()
