"""What a data channel tells its owner, in the past tense, and who is told."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyinfra_ssm._messages import PayloadType
from pyinfra_ssm._payloads import decode_exit_code, decode_flag


@dataclass(frozen=True, slots=True)
class Event:
    """Anything that a channel reports."""


@dataclass(frozen=True, slots=True)
class ChannelOpened(Event):
    """Input is delivered from now on. The message is what the account wants its users to see."""

    customer_message: str = ""


@dataclass(frozen=True, slots=True)
class DataKeyRequested(Event):
    """The agent wants the session encrypted: answer with provide_data_key or refuse_data_key."""

    key_id: str


@dataclass(frozen=True, slots=True)
class OutputReceived(Event):
    """Bytes of the terminal or of stdout, in order, without gaps or repeats."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ErrorOutputReceived(Event):
    """Bytes of stderr; only sessions with separate output streams have it."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ExitCodeReceived(Event):
    """Status of the command; only sessions with separate output streams have it."""

    code: int


@dataclass(frozen=True, slots=True)
class FlagReceived(Event):
    """A number of SessionFlag, or one that is not known here."""

    flag: int


@dataclass(frozen=True, slots=True)
class PublicationPaused(Event):
    """The agent's own socket is gone for the moment: nothing is sent until it is back."""


@dataclass(frozen=True, slots=True)
class PublicationStarted(Event):
    """It is back."""


@dataclass(frozen=True, slots=True)
class ProbeAnswered(Event):
    """Whether a large frame arrived; if so, all later frames are as large."""

    passed: bool


@dataclass(frozen=True, slots=True)
class ChannelClosed(Event):
    """The session is over; `output` is the service's reason, empty after an ordinary end."""

    output: str = ""


_OF_PAYLOAD: dict[int, Callable[[bytes], Event]] = {
    PayloadType.OUTPUT: OutputReceived,
    PayloadType.STDERR: ErrorOutputReceived,
    PayloadType.EXIT_CODE: lambda payload: ExitCodeReceived(decode_exit_code(payload)),
    PayloadType.FLAG: lambda payload: FlagReceived(decode_flag(payload)),
}


def of_stream(payload_type: int, payload: bytes) -> list[Event]:
    """Return the event of a stream payload; none for a type that later agents may add."""
    make = _OF_PAYLOAD.get(payload_type)
    return [make(payload)] if make else []


class Receiver(Protocol):
    """What becomes of a session's output. Called by the session's thread, under its lock."""

    def take(self, event: Event, now: float) -> bytes:
        """Note what happened; return what to send in answer."""

    def unasked(self, now: float) -> bytes:
        """Return what to send by now without being asked."""

    def farewell(self) -> bytes:
        """Return the last thing to send."""

    @property
    def is_full(self) -> bool:
        """Whether to stop reading for a while."""
