"""Which transport a host is reached by, and waiting for a host to come back."""

from collections.abc import Callable
from dataclasses import dataclass

from pyinfra_ssm import _leaving
from pyinfra_ssm._account import Account
from pyinfra_ssm._errors import Interrupted, NoProgram, ServiceError, SSMError
from pyinfra_ssm._run_command import RunCommandTransport
from pyinfra_ssm._session import monotonic, real_waiting
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import SessionOptions, Transport

TRANSPORTS = ("auto", "session", "run-command")
LARGEST_PAYLOAD = 200_000  # bytes, as large as an agent was seen to take (recorded)
# Where no session can be had, but perhaps a command can be sent.
_NO_SESSION = {"AccessDeniedException", "InvalidDocument"}
# What a host answers with while it reboots or its agent restarts.
_AWAY = {"TargetNotConnected", "InvalidInstanceId"}
_LOOK_EVERY = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class Choice:
    """What the knobs say: which transport, its options, and whether Run Command takes secrets."""

    transport: str
    session: SessionOptions
    secrets_in_history: bool


def reach(
    account: Account,
    target: str,
    choice: Choice,
    patience: float,
    warn: Callable[[str], None],
) -> Transport:
    """Return an open transport; `patience` is for how many seconds the host may be away."""
    give_up = monotonic() + patience
    while True:
        if _leaving.is_going():
            raise Interrupted("interrupted")
        try:
            return _open(account, target, choice, warn)
        except (ServiceError, NoProgram) as error:
            away = isinstance(error, NoProgram) or error.code in _AWAY
            if not away or monotonic() > give_up:
                raise
        real_waiting.sleep(_LOOK_EVERY)


def _open(account: Account, target: str, choice: Choice, warn: Callable[[str], None]) -> Transport:
    if not 0 <= choice.session.payload_size <= LARGEST_PAYLOAD:
        raise SSMError(f"ssm_payload_size is not within 0 and {LARGEST_PAYLOAD}")
    session = SessionTransport(account, target, choice.session)
    commands = RunCommandTransport(account, target, real_waiting, choice.secrets_in_history)
    if choice.transport == "run-command":
        commands.open()
        return commands
    if choice.transport not in TRANSPORTS:
        raise SSMError(f"ssm_transport is {choice.transport}, wanted {', '.join(TRANSPORTS)}")
    try:
        session.open()
        return session
    except (ServiceError, NoProgram) as error:
        no_session = isinstance(error, NoProgram) or error.code in _NO_SESSION
        if choice.transport == "session" or not no_session:
            raise
        reason = error
    try:
        commands.open()
    except SSMError as error:
        raise NoProgram(f"{reason} Run Command does not work either: {error}") from error
    warn(f"Falls back to Run Command: {reason}")
    return commands
