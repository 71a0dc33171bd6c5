"""What the peer sends, put in order: without gaps, without repeats."""

from collections.abc import Iterator

from pyinfra_ssm._messages import AgentMessage

# Frames ahead of their turn: 16 MiB. An agent has no window of its own and repeats one lost frame
# each 200 ms, so behind several losses a lot piles up. What does not fit is left unacknowledged,
# and comes again as slowly.
REORDER_LIMIT = 16_384


class ReceiveWindow:
    """Frames that came ahead of their turn, until those before them are there."""

    def __init__(self) -> None:
        self._expected = 0  # number of the next frame to deliver
        self._early: dict[int, AgentMessage] = {}

    def has_room(self, sequence: int) -> bool:
        """Whether a frame may be acknowledged, which is to promise that it is kept."""
        return sequence < self._expected + REORDER_LIMIT

    def take(self, message: AgentMessage) -> Iterator[AgentMessage]:
        """Yield every frame whose turn has come with this one: none where it is early or known."""
        if message.sequence >= self._expected:
            self._early.setdefault(message.sequence, message)
        while (turn := self._early.pop(self._expected, None)) is not None:
            self._expected += 1
            yield turn

    def clear(self) -> None:
        """Let go of what will have no turn."""
        self._early.clear()
