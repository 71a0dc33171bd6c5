"""Hosts for the connector's tests: the emulator, with this machine as the managed instance."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from pyinfra_ssm._account import Account
from pyinfra_ssm._session import new_lock, real_waiting
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import Ending, Request, SessionOptions, Stream
from pyinfra_ssm.emulator import DEFAULT_ID, Emulator, Faults, Instance

OPTIONS = SessionOptions(
    document="AWS-StartInteractiveCommand",
    bulk_document="AWS-StartNonInteractiveCommand",
    python="python3",
    payload_size=0,
)


class Host:
    """An open transport, and the emulator behind it."""

    def __init__(self, emulator: Emulator, transport: Any) -> None:
        self.emulator = emulator
        self.transport = transport

    def run(self, command: str, stdin: bytes = b"", **members: Any) -> tuple[Ending, bytes, bytes]:
        """Run a command; return how it ended, its stdout, its stderr."""
        output = {stream: bytearray() for stream in Stream}
        ending = self.transport.run(
            Request(command, stdin, **members), lambda stream, data: output[stream].extend(data)
        )
        return ending, bytes(output[Stream.STDOUT]), bytes(output[Stream.STDERR])


Start = Callable[..., Host]
Emulate = Callable[..., Emulator]


def account() -> Account:
    """Return an account whose clients talk to whatever emulator the environment names."""
    return Account(None, None, real_waiting, new_lock())


@pytest.fixture(scope="session")
def shared_emulator() -> Iterator[Emulator]:
    with Emulator(Faults(start_delay_s=0)) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def host(shared_emulator: Emulator) -> Iterator[Host]:
    """A host over a session that all tests share; they leave it open and sound."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shared_emulator.environment.items():
            patch.setenv(name, value)
        transport = SessionTransport(account(), DEFAULT_ID, OPTIONS)
        transport.open()
        yield Host(shared_emulator, transport)
        transport.close()


@pytest.fixture
def emulate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulate]:
    """Start an emulator of one's own and make it the one that boto3 talks to."""
    with ExitStack() as stack:

        def emulate(
            instances: Sequence[Instance] = (), documents: Any = None, **faults: Any
        ) -> Emulator:
            chosen = Faults(start_delay_s=0).changed(faults)
            emulator = stack.enter_context(Emulator(chosen, instances, documents))
            for name, value in emulator.environment.items():
                monkeypatch.setenv(name, value)
            return emulator

        yield emulate


@pytest.fixture
def start(emulate: Emulate) -> Iterator[Start]:
    """Open a session transport to an emulator of one's own; keyword arguments are faults."""
    opened: list[SessionTransport] = []

    def start(options: SessionOptions = OPTIONS, **keywords: Any) -> Host:
        emulator = emulate(**keywords)
        transport = SessionTransport(account(), DEFAULT_ID, options)
        opened.append(transport)
        transport.open()
        return Host(emulator, transport)

    yield start
    for transport in opened:
        transport.close()
