"""A recorded stream, sent again at the pace at which it came: the same truth for every client.

recorded/vllm-0.32.0-stream.jsonl holds the lines that vLLM 0.32.0 sent from its CPU for 128 tokens,
each with the seconds since the request.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from tests.bench.fake_server import Body, FakeServer
from tests.loopback import serving

RECORDED = Path(__file__).parent / "recorded" / "vllm-0.32.0-stream.jsonl"


def recording() -> list[tuple[float, bytes]]:
    """Return (seconds since the request, line) of every line that is not blank."""
    lines = (json.loads(line) for line in RECORDED.read_text().splitlines())
    return [(at, text.encode()) for at, text in lines]


class Paced(list[bytes]):
    """Chunks that come at their time: a late one does not make the next later."""

    def __iter__(self) -> Iterator[bytes]:
        began = time.monotonic()
        for at, line in recording():
            Event().wait(max(0.0, began + at - time.monotonic()))
            yield line + b"\n\n"


def paced(body: Body) -> list[bytes]:
    return Paced()


@contextmanager
def replaying() -> Iterator[FakeServer]:
    with serving(FakeServer(paced)) as server:
        yield server
