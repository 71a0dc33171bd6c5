"""What was sent and not yet acknowledged: when to send it again, and how much may be under way.

The timeout is the agent's own estimate (first 200 ms, gains 1/8 and 1/4, at most 1 s). Two things
differ from the reference clients, which resend only the oldest frame and drop it once 10,000 are
outstanding (https://github.com/aws/amazon-ssm-agent/issues/274): all that is due is sent again,
and nothing is ever dropped, because no more is sent than the window holds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pyinfra_ssm._messages import AgentMessage

FIRST_TIMEOUT = 0.2  # seconds
LONGEST_TIMEOUT = 1.0
# The reference clients look every 100 ms. Below that, one slow write to a terminal in the agent,
# which acknowledges in the same goroutine, would make us repeat all that is under way.
SHORTEST_TIMEOUT = 0.1
# What an agent keeps ahead of its turn is limited (100,000 frames, by its source), and what a
# reference client keeps unacknowledged is too (10,000); stay well below either.
MOST_FRAMES = 4096
# 1 MiB at a 40 ms round trip is 25 MB/s, twice what an agent was seen to take.
LARGEST_WINDOW = 1 << 20
SMALLEST_WINDOW = 32 << 10
FIRST_WINDOW = 128 << 10


class RoundTripTime:
    """Smoothed round trip and its variation, in seconds, and the timeout that follows."""

    def __init__(self) -> None:
        self.timeout = FIRST_TIMEOUT
        self._smoothed: float | None = None
        self._variation = 0.0

    def sample(self, elapsed: float) -> None:
        if self._smoothed is None:
            self._smoothed, self._variation = elapsed, elapsed / 2
        else:
            self._variation += (abs(self._smoothed - elapsed) - self._variation) / 4
            self._smoothed += (elapsed - self._smoothed) / 8
        wanted = self._smoothed + 4 * self._variation
        self.timeout = min(max(wanted, SHORTEST_TIMEOUT), LONGEST_TIMEOUT)


@dataclass
class _Sent:
    message: AgentMessage
    raw: bytes
    at: float
    due: float
    timeout: float
    again: bool = False


class SendWindow:
    """Frames under way, in order of their sequence numbers.

    While it `is_paused`, because the agent is away, one frame is: the oldest, or a new one. Its
    acknowledgement tells of the end of a pause that nobody else announces: the reference plug-in
    takes no notice of pauses, so nobody knows that the service always ends them
    (https://github.com/aws/session-manager-plugin/blob/mainline/src/datachannel/streaming.go).
    """

    def __init__(self) -> None:
        self.is_paused = False
        self.round_trip = RoundTripTime()
        self.limit = FIRST_WINDOW  # bytes
        self._sent: dict[int, _Sent] = {}
        self._bytes = 0
        self._shrunk_at = float("-inf")

    def __len__(self) -> int:
        return len(self._sent)

    def has_room(self, next_sequence: int) -> bool:
        """Whether one more frame may go; the span counts, since the peer keeps what is ahead."""
        if not self._sent:
            return True
        if self.is_paused:
            return False
        return self._bytes < self.limit and next_sequence - next(iter(self._sent)) < MOST_FRAMES

    def add(self, message: AgentMessage, now: float) -> bytes:
        """Note that `message` is sent now; return its bytes."""
        timeout = self.round_trip.timeout
        raw = message.encode()
        self._sent[message.sequence] = _Sent(message, raw, now, now + timeout, timeout)
        self._bytes += len(raw)
        return raw

    def replace(self, message: AgentMessage, now: float) -> bytes:
        """Send `message` in the place of the unacknowledged frame that has its number."""
        self._bytes -= len(self._sent[message.sequence].raw)
        return self.add(message, now)

    def acknowledge(self, sequence: int, now: float) -> bool:
        """Forget the frame; return whether it was under way. Only first sendings time the trip."""
        sent = self._sent.pop(sequence, None)
        if sent is None:
            return False
        self._bytes -= len(sent.raw)
        if not sent.again:
            self.round_trip.sample(now - sent.at)
            self.limit = min(self.limit + len(sent.raw), LARGEST_WINDOW)
        return True

    def deadline(self) -> float | None:
        return min((sent.due for sent in self._repeatable()), default=None)

    def take_due(self, now: float) -> list[bytes]:
        """Return every frame that is due again, oldest first, and set its next time."""
        due = [sent for sent in self._repeatable() if sent.due <= now]
        for sent in due:
            sent.again = True
            sent.timeout = min(sent.timeout * 2, LONGEST_TIMEOUT)
            sent.due = now + sent.timeout
        if due and now - self._shrunk_at > self.round_trip.timeout:  # once a round trip
            self.limit = max(self.limit // 2, SMALLEST_WINDOW)
            self._shrunk_at = now
        return [sent.raw for sent in due]

    def _repeatable(self) -> Iterator[_Sent]:
        return islice(self._sent.values(), 1 if self.is_paused else None)

    def expire_all(self, now: float) -> None:
        """Make everything due: whatever was on the old socket is lost."""
        for sent in self._sent.values():
            sent.due = now
            sent.timeout = self.round_trip.timeout
