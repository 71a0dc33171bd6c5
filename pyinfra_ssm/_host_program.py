"""Our program on the host as seen from here, without I/O: its start, its frames by request."""

import json
from collections import deque
from typing import Any

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._events import ErrorOutputReceived, Event, OutputReceived, ProbeAnswered
from pyinfra_ssm._program import ready_marker, serving_program
from pyinfra_ssm.remote.framing import ArmourDecoder, Frame, FramingError, Kind, encode

# Seconds between pings while something runs. A session that is silent for its idle limit (20
# minutes, or what the account says) is ended by the service, and with it a long silent command.
PING_EVERY = 15.0
# Frames that wait for their reader; beyond it the socket is not read, and the agent slows down.
BACKLOG_LIMIT = 8 << 20
_NOISE_KEPT = 4 << 10


class HostProgram:
    """The receiver of a serving session: sends the program when the host is ready for it."""

    def __init__(self, nonce: str) -> None:
        self.is_up = False  # the program has said hello
        self.probed: bool | None = None
        self._marker = ready_marker(nonce)
        self._started = bytearray()  # output before the marker
        self._is_ready = False
        self._decoder = ArmourDecoder()
        self._frames: dict[int, deque[Frame]] = {}  # of the requests that are open
        self._backlog = 0
        self._is_awaited = False  # a reader found nothing: go on reading, whatever waits
        self._next_ident = 1
        self._pinged = 0.0

    # For the session

    def take(self, event: Event, now: float) -> bytes:
        if isinstance(event, ProbeAnswered):
            self.probed = event.passed
        if not isinstance(event, OutputReceived | ErrorOutputReceived):
            return b""
        if self._is_ready:
            self._take_output(event.data)
            return b""
        self._started += event.data
        before, marker, rest = self._started.partition(self._marker)
        if not marker:
            self._started = self._started[-_NOISE_KEPT:]
            return b""
        self._is_ready = True
        self._started = before
        self._take_output(bytes(rest))
        return serving_program()

    def unasked(self, now: float) -> bytes:
        if not self._frames or not self.is_up or now - self._pinged < PING_EVERY:
            return b""
        self._pinged = now
        return encode(Frame(Kind.PING, 0))

    def farewell(self) -> bytes:
        return encode(Frame(Kind.LEAVE, 0)) if self.is_up else b""

    @property
    def is_full(self) -> bool:
        return self._backlog > BACKLOG_LIMIT and not self._is_awaited

    # For requests

    def open_request(self) -> int:
        """Return the number of a new request; its frames are kept until close_request()."""
        ident, self._next_ident = self._next_ident, self._next_ident + 1
        self._frames[ident] = deque()
        return ident

    def close_request(self, ident: int) -> None:
        self._backlog -= sum(len(frame.body) for frame in self._frames.pop(ident))

    def next_frame(self, ident: int) -> Frame | None:
        """Return the oldest frame of a request that nobody took; None if there is none yet."""
        self._is_awaited = not self._frames[ident]
        if self._is_awaited:
            return None
        frame = self._frames[ident].popleft()
        self._backlog -= len(frame.body)
        return frame

    @property
    def noise(self) -> str:
        """What the host printed that was not ours: banners, and why the program did not start."""
        return bytes((self._started + self._decoder.noise)[-_NOISE_KEPT:]).decode(errors="replace")

    def _take_output(self, data: bytes) -> None:
        try:
            frames = self._decoder.feed(data)
        except FramingError as error:
            raise ProtocolError(f"the program on the host sent {error}") from error
        for frame in frames:
            if frame.kind == Kind.HELLO:
                self.is_up = True
            elif frame.ident in self._frames:  # others are of requests that were given up
                self._frames[frame.ident].append(frame)
                self._backlog += len(frame.body)


def read_json(frame: Frame) -> dict[str, Any]:
    """Return the JSON object that a frame holds."""
    try:
        members = json.loads(frame.body)
    except ValueError as error:
        raise ProtocolError(f"frame of kind {frame.kind} is not JSON") from error
    if not isinstance(members, dict):
        raise ProtocolError(f"frame of kind {frame.kind} is not a JSON object")
    return members
