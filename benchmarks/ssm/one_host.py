"""What one host takes: opening, commands in a row, files both ways, a line that loses frames."""

import io
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ssm.hosts import ONE_WAY_MS, ROUND_TRIP, transport
from benchmarks.ssm.target import Target, elapsed
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import Request
from pyinfra_ssm.emulator import Faults

COMMANDS = 100
FILE_MB = 20
LOST = 0.05
BAD_COMMANDS = 1000
BAD_FILE = 5_000_000  # bytes


def commands() -> Iterator[Target]:
    with transport(Faults(delay_ms=ONE_WAY_MS)) as host:
        yield Target("open", elapsed(host.open), 2.5, "s")
        took = elapsed(lambda: [run(host, "echo here") for _ in range(COMMANDS)])
        yield Target(f"commands-{COMMANDS}", took, 1.15 * COMMANDS * ROUND_TRIP, "s")


def files() -> Iterator[Target]:
    noise = random.Random(1).randbytes(FILE_MB * 1_000_000)
    with transport(Faults(delay_ms=ONE_WAY_MS)) as host, TemporaryDirectory() as folder:
        host.open()
        remote, text = f"{folder}/noise", Path(folder, "text")
        took = elapsed(lambda: host.put(remote, io.BytesIO(noise), None))
        yield Target("upload", FILE_MB / took, 4, "MB/s", least=True)
        text.write_bytes(log_text(FILE_MB * 1_000_000))
        for name, path, limit in (("download-text", str(text), 3), ("download-random", remote, 2)):
            sink = io.BytesIO()
            took = elapsed(lambda path=path, sink=sink: host.get(path, sink, None))  # type: ignore[misc]
            if sink.getvalue() != Path(path).read_bytes():
                raise AssertionError(f"{name}: the file that arrived is another")
            yield Target(name, FILE_MB / took, limit, "MB/s", least=True)


def bad_line() -> Iterator[Target]:
    """Commands and a file over a line that loses, doubles and reorders, and a socket that closes.

    The target is that all is right: the figure counts what was wrong or ran twice.
    """
    faults = Faults(delay_ms=1, loss=LOST, duplication=LOST, reordering=LOST, close_every_s=5.0)
    with transport(faults) as host, TemporaryDirectory() as folder:
        host.open()
        wrong = 0
        for number in range(BAD_COMMANDS):
            said = run(host, f"echo {number} >>{folder}/ran; echo answer {number}")
            wrong += said != b"answer %d\n" % number
        ran = Path(folder, "ran").read_text().split()
        wrong += ran != [str(number) for number in range(BAD_COMMANDS)]
        content = random.Random(2).randbytes(BAD_FILE)
        host.put(f"{folder}/file", io.BytesIO(content), None)
        wrong += Path(folder, "file").read_bytes() != content
        yield Target(f"bad-line-{BAD_COMMANDS}-wrong", wrong, 0, "")


def run(host: SessionTransport, command: str) -> bytes:
    """Return what a command prints."""
    output = bytearray()
    host.run(Request(command), lambda _, data: output.extend(data))
    return bytes(output)


def log_text(size: int) -> bytes:
    """Return text as a service logs it: it compresses about fourfold."""
    chance = random.Random(3)
    lines = []
    length = 0
    while length < size:
        line = (
            f"2026-11-30T{chance.randrange(24):02}:{chance.randrange(60):02} level=info "
            f"request={chance.getrandbits(64):016x} took={chance.random():.4f} path=/v1/chat\n"
        )
        lines.append(line)
        length += len(line)
    return "".join(lines).encode()[:size]
