"""The agent's end of a data channel in a few lines, written from the recordings, for tests.

It shares only the frame codec with the code under test: no state machine, no timers of ours.
"""

from dataclasses import dataclass, field
from uuid import UUID, uuid4

from pyinfra_ssm._messages import AgentMessage, MessageType, PayloadType
from pyinfra_ssm._payloads import Acknowledgement

RESEND_AFTER = 0.2  # recorded: only the oldest unacknowledged frame, each 200 ms


@dataclass
class AgentEnd:
    received: list[AgentMessage] = field(default_factory=list)  # input, in order, once each
    outbox: list[bytes] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)  # our output, as the client saw it
    _early: dict[int, AgentMessage] = field(default_factory=dict)
    _unacked: dict[int, AgentMessage] = field(default_factory=dict)
    _next: int = 0
    _resend_at: float = 0.0

    @property
    def input(self) -> bytes:
        return b"".join(m.payload for m in self.received if m.payload_type == PayloadType.OUTPUT)

    def write(self, payload: bytes, kind: int = PayloadType.OUTPUT, now: float = 0.0) -> None:
        flags = 1 if self._next == 0 else 0
        message = output(self._next, payload, kind, flags)
        self._next += 1
        if not self._unacked:
            self._resend_at = now + RESEND_AFTER
        self._unacked[message.sequence] = message
        self.outbox.append(message.encode())

    def receive(self, raw: bytes) -> None:
        message = AgentMessage.decode(raw)
        if message.message_type == MessageType.ACKNOWLEDGE:
            sequence = Acknowledgement.decode(message.payload).sequence
            self.acknowledged.append(sequence)
            self._unacked.pop(sequence, None)
            return
        self.outbox.append(Acknowledgement.of(message).frame(uuid4(), 0).encode())
        if message.sequence >= len(self.received):
            self._early.setdefault(message.sequence, message)
        while (turn := self._early.pop(len(self.received), None)) is not None:
            self.received.append(turn)

    def tick(self, now: float) -> None:
        if self._unacked and now >= self._resend_at:
            self._resend_at = now + RESEND_AFTER
            self.outbox.append(next(iter(self._unacked.values())).encode())

    def data_to_send(self) -> list[bytes]:
        outbox, self.outbox = self.outbox, []
        return outbox


def output(
    sequence: int, payload: bytes, kind: int = PayloadType.OUTPUT, flags: int = 0
) -> AgentMessage:
    return AgentMessage(
        MessageType.OUTPUT, uuid4(), payload, sequence=sequence, payload_type=kind, flags=flags
    )


def from_service(message_type: str, payload: bytes = b"{}") -> bytes:
    return AgentMessage(message_type, UUID(int=9), payload, flags=3).encode()
