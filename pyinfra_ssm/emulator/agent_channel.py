"""The agent's end of a data channel, without I/O: frames and the time go in, frames come out.

It follows the recorded agent, its flaws included: only the oldest unacknowledged frame is sent
again, nothing limits how much is under way, and the digest of input is not looked at. Source:
https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/datachannel/datachannel.go
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from uuid import UUID

from pyinfra_ssm._messages import AgentMessage, Flags, MessageType, PayloadType
from pyinfra_ssm._payloads import Acknowledgement

RESEND_TICK = 0.1  # seconds between looks at the oldest unacknowledged frame
_FIRST_TIMEOUT = 0.2
_FIRST_ROUND_TRIP = 0.1
_MAX_TIMEOUT = 1.0
_CLOCK_GRANULARITY = 0.01
_BUFFERED_FRAMES = 100_000  # the agent's limit in either direction


class Arrival(Enum):
    """What a frame of input is to the agent."""

    NEXT = auto()
    AHEAD = auto()  # acknowledged and kept
    REPEATED = auto()  # acknowledged again
    REFUSED = auto()  # no room: left unacknowledged


@dataclass
class _Sent:
    frame: AgentMessage
    at: float


class AgentChannel:
    """Call data_to_send() after every other call, and tick() each RESEND_TICK."""

    def __init__(self, new_id: Callable[[], UUID], clock_ms: Callable[[], int]) -> None:
        self._new_id = new_id
        self._clock_ms = clock_ms
        self._sequence = 0  # of the next frame of output
        self._expected = 0  # of the next frame of input
        self._unacknowledged: dict[int, _Sent] = {}  # in the order of sending
        self._ahead: dict[int, AgentMessage] = {}
        self._outbox: list[bytes] = []
        self._round_trip, self._variation = _FIRST_ROUND_TRIP, 0.0
        self._timeout = _FIRST_TIMEOUT
        self.paused = False

    @property
    def is_drained(self) -> bool:
        return not self._unacknowledged

    def send(self, payload_type: PayloadType, payload: bytes, now: float) -> None:
        """Send one frame, or keep it for the resend while paused. Empty payloads are dropped."""
        if not payload:
            return
        frame = AgentMessage(
            MessageType.OUTPUT,
            self._new_id(),
            payload,
            sequence=self._sequence,
            flags=Flags.NONE if self._sequence else Flags.SYN,
            payload_type=payload_type,
            created=self._clock_ms(),
        )
        self._sequence += 1
        if len(self._unacknowledged) < _BUFFERED_FRAMES:
            self._unacknowledged[frame.sequence] = _Sent(frame, now)
        if not self.paused:
            self._outbox.append(frame.encode())

    def receive(self, message: AgentMessage) -> Arrival:
        """Say what a frame of input is. One that is NEXT must be followed by accept(), if at all.

        Traffic from the client ends a pause, whatever the service said (source).
        """
        self.paused = False
        if message.sequence == self._expected:
            return Arrival.NEXT
        if message.sequence < self._expected:
            self._acknowledge(message)
            return Arrival.REPEATED
        if len(self._ahead) >= _BUFFERED_FRAMES:
            return Arrival.REFUSED
        self._acknowledge(message)
        self._ahead[message.sequence] = message
        return Arrival.AHEAD

    def accept(self, message: AgentMessage) -> None:
        """Acknowledge the expected frame, once its handler has taken it, and expect the next."""
        if self._ahead.pop(message.sequence, None) is None:
            self._acknowledge(message)
        self._expected = message.sequence + 1

    def next_kept(self) -> AgentMessage | None:
        """Return the expected frame if it came ahead of its turn; accept() forgets it."""
        return self._ahead.get(self._expected)

    def acknowledged(self, acknowledgement: Acknowledgement, now: float) -> None:
        self.paused = False
        sent = self._unacknowledged.pop(acknowledgement.sequence, None)
        if sent is not None:
            self._learn(now - sent.at)

    def tick(self, now: float) -> None:
        """Send the oldest unacknowledged frame again if it is due."""
        oldest = next(iter(self._unacknowledged.values()), None)
        if self.paused or oldest is None or now - oldest.at <= self._timeout:
            return
        oldest.at = now
        self._outbox.append(oldest.frame.encode())

    def data_to_send(self) -> list[bytes]:
        outbox, self._outbox = self._outbox, []
        return outbox

    def _acknowledge(self, message: AgentMessage) -> None:
        frame = Acknowledgement.of(message).frame(self._new_id(), self._clock_ms())
        self._outbox.append(frame.encode())

    def _learn(self, round_trip: float) -> None:
        """Adapt the resend timeout, measured from the *last* sending, as the agent does."""
        self._variation = 0.75 * self._variation + 0.25 * abs(self._round_trip - round_trip)
        self._round_trip = 0.875 * self._round_trip + 0.125 * round_trip
        timeout = self._round_trip + max(_CLOCK_GRANULARITY, 4 * self._variation)
        self._timeout = min(timeout, _MAX_TIMEOUT)
