"""What the connector asks of a host, whichever way it is reached."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Protocol


class Stream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class Request:
    """One command for a shell. `timeout` is in seconds, None for no limit.

    `has_secret` says that `command` or `stdin` holds what must not be kept anywhere.
    """

    command: str
    stdin: bytes = b""
    timeout: float | None = None
    terminal: bool = False
    has_secret: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended: by `status`, or by `signal`; `timed_out` if its time was up."""

    status: int | None = None
    signal: int | None = None
    timed_out: bool = False

    @property
    def code(self) -> int:
        """The status as a shell would give it: 128 and the number for a signal."""
        if self.status is not None:
            return self.status
        return 128 + (self.signal or 0)


OnOutput = Callable[[Stream, bytes], None]


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """`payload_size` in bytes, 0 to find out; `bulk_document` may be empty for none."""

    document: str
    bulk_document: str
    python: str
    payload_size: int


class Transport(Protocol):
    """A way to a host. All but close() raise SSMError of some kind."""

    def open(self) -> None:
        """Make it ready for requests."""

    def run(self, request: Request, on_output: OnOutput) -> Ending:
        """Run a command; tell its output as it comes, in pieces of any size."""

    def put(
        self, path: str, source: BinaryIO, user: str | None, limit: float | None = None
    ) -> None:
        """Write a file as `user` (None: root). A new one is 0600; an old one keeps its mode.

        `limit` is in seconds; beyond it HostTimeout is raised, and the file is as it was.
        """

    def get(self, path: str, sink: BinaryIO, user: str | None, limit: float | None = None) -> None:
        """Read a file as `user` (None: root), within `limit` seconds."""

    def close(self) -> None:
        """Leave nothing behind, here or there; never raises."""
