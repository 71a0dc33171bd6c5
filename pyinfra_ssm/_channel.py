"""A Session Manager data channel without I/O: bytes and the time in, events and bytes out.

Times are seconds of one monotonic clock. A new socket (the first, and each after ResumeSession) is
announced by connected(); numbering, the reorder buffer and what is unacknowledged live on across
sockets, as the agent's do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from pyinfra_ssm._encryption import Cipher
from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._events import (
    ChannelClosed,
    ChannelOpened,
    DataKeyRequested,
    Event,
    ProbeAnswered,
    PublicationPaused,
    PublicationStarted,
    of_stream,
)
from pyinfra_ssm._handshake import KeyAnswer, answer, requested_key
from pyinfra_ssm._messages import AgentMessage, MessageType, PayloadType
from pyinfra_ssm._payloads import (
    Acknowledgement,
    ClosingNotice,
    EncryptionChallenge,
    HandshakeComplete,
    HandshakeRequest,
    OpenDataChannel,
)
from pyinfra_ssm._reordering import ReceiveWindow
from pyinfra_ssm._retransmission import SendWindow
from pyinfra_ssm._states import State, Step, step_of

# What the reference clients send. Whether the service passes more is not published; see probe().
DEFAULT_PAYLOAD_SIZE = 1024
# Input that waits for the window. Enough to keep a fast link busy, little enough to hold per host.
UNSENT_LIMIT = 1 << 20
# Time for a large frame to be acknowledged. Longer than the longest timeout, so that one loss is
# repeated before it is taken for a refusal.
PROBE_PATIENCE = 3.0

_ENCRYPTED = {PayloadType.OUTPUT, PayloadType.STDERR, PayloadType.EXIT_CODE}


@dataclass(frozen=True)
class _Probe:
    """A large frame under way, and what takes its number if it does not arrive in time."""

    sequence: int
    large: bytes
    small: bytes
    patience_ends: float


class Channel:
    """One data channel. Call deadline() and data_to_send() after every other call."""

    def __init__(
        self,
        client_id: UUID,
        new_id: Callable[[], UUID],
        epoch: float = 0.0,
        payload_size: int = DEFAULT_PAYLOAD_SIZE,
    ) -> None:
        """`epoch` is what to add to a time given here to get seconds since 1970."""
        self.state = State.OPENING
        self.payload_size = payload_size
        self.window = SendWindow()
        self._client_id = client_id
        self._new_id = new_id
        self._epoch = epoch
        self._outbox: list[bytes | str] = []
        self._unsent = bytearray()
        self._next_sequence = 0  # of the next frame we send
        self._arriving = ReceiveWindow()
        self._request: HandshakeRequest | None = None
        self._cipher: Cipher | None = None
        self._probe: _Probe | None = None

    # Calls of the owner

    def connected(self, token: str, now: float) -> list[Event]:
        """Start on a new socket: say who we are, and repeat whatever the old one may have lost."""
        opening = OpenDataChannel(token, request_id=self._new_id(), client_id=self._client_id)
        self._outbox = [opening.encode()]
        self.window.is_paused = False  # a pause belongs to the socket that it came on
        events = self._give_up_probe(now)
        self.window.expire_all(now)
        self._fill_window(now)
        return events

    @property
    def room(self) -> int:
        """How many more bytes send() takes now."""
        return 0 if self.state is State.CLOSED else UNSENT_LIMIT - len(self._unsent)

    def send(self, data: bytes, now: float) -> None:
        """Queue input. It leaves when the handshake is over and the window has room.

        Sent during the handshake it would be acknowledged and thrown away (recorded).
        """
        if len(data) > self.room:
            raise ValueError(f"{len(data)} bytes of input, but there is room for {self.room}")
        self._unsent += data
        self._fill_window(now)

    def probe(self, large: bytes, small: bytes, now: float) -> None:
        """Find out whether frames as large as `large` pass; ProbeAnswered says.

        Either payload is delivered in the end, and nobody can know which: both must mean the same
        to the other side, and nothing. Until then, no other input leaves.
        """
        if not self.is_quiet:
            raise ValueError("a probe needs a quiet channel")
        self._probe = _Probe(self._next_sequence, large, small, now + PROBE_PATIENCE)
        self._send_frame(PayloadType.OUTPUT, large, now)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing of ours is under way or waits."""
        return self.state is State.RUNNING and not (len(self.window) or self._unsent)

    def provide_data_key(self, plaintext: bytes, ciphertext: bytes, now: float) -> None:
        """Answer DataKeyRequested with the two forms in which KMS gave the new key."""
        cipher = Cipher.of_client(plaintext)
        self._respond(KeyAnswer(ciphertext), now)
        self._cipher = cipher

    def refuse_data_key(self, reason: str, now: float) -> None:
        """Answer DataKeyRequested with what went wrong; the agent then ends the session."""
        self._respond(KeyAnswer(error=reason), now)

    def receive(self, raw: bytes, now: float) -> list[Event]:
        """Take one binary frame; return what came of it, or raise ProtocolError."""
        message = AgentMessage.decode(raw)
        if not message.is_intact:
            raise ProtocolError(f"{message.message_type} {message.sequence} has a wrong digest")
        if self.state is State.CLOSED:
            return []  # recorded: channel_closed comes twice, and late output after it
        match message.message_type:
            case MessageType.OUTPUT:
                return self._receive_stream(message, now)
            case MessageType.ACKNOWLEDGE:
                return self._receive_acknowledgement(message, now)
            case MessageType.CHANNEL_CLOSED:
                return self._close(ClosingNotice.decode(message.payload))
            case MessageType.PAUSE_PUBLICATION:
                self.window.is_paused = True
                return [PublicationPaused()]
            case MessageType.START_PUBLICATION:
                return self._end_pause(now)
        return []  # of a later service; the reference plug-in takes no notice either

    def data_to_send(self) -> list[bytes | str]:
        """Return what to write to the socket: a str as one text frame, bytes as a binary one."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def deadline(self) -> float | None:
        """Return when handle_deadline() is next due, or None."""
        if self.state is State.CLOSED:
            return None
        resend = self.window.deadline()
        patience = self._probe.patience_ends if self._probe else None
        return min((at for at in (resend, patience) if at is not None), default=None)

    def handle_deadline(self, now: float) -> list[Event]:
        """Repeat all that is due, and give up a probe that nobody answered."""
        due = self.deadline()
        if due is None or now < due:
            return []
        events: list[Event] = []
        if self._probe and self._probe.patience_ends <= now:
            events = self._give_up_probe(now)
        self._outbox += self.window.take_due(now)
        return events

    # Sending

    def _fill_window(self, now: float) -> None:
        if self.state is not State.RUNNING or self._probe:
            return
        while self._unsent and self.window.has_room(self._next_sequence):
            payload = bytes(self._unsent[: self.payload_size])
            del self._unsent[: self.payload_size]
            self._send_frame(PayloadType.OUTPUT, payload, now)

    def _send_frame(self, kind: PayloadType, payload: bytes, now: float) -> None:
        message = self._input(kind, payload, self._next_sequence, now)
        self._next_sequence += 1
        self._outbox.append(self.window.add(message, now))

    def _input(self, kind: PayloadType, payload: bytes, sequence: int, now: float) -> AgentMessage:
        if self._cipher and kind in _ENCRYPTED:
            payload = self._cipher.encrypt(payload)
        return AgentMessage(
            MessageType.INPUT,
            self._new_id(),
            payload,
            sequence=sequence,
            payload_type=kind,
            created=self._created(now),
        )

    def _created(self, now: float) -> int:
        return round((self._epoch + now) * 1000)

    def _give_up_probe(self, now: float) -> list[Event]:
        if self._probe is None:
            return []
        probe, self._probe = self._probe, None
        message = self._input(PayloadType.OUTPUT, probe.small, probe.sequence, now)
        self._outbox.append(self.window.replace(message, now))
        self._fill_window(now)
        return [ProbeAnswered(passed=False)]

    # Receiving

    def _end_pause(self, now: float) -> list[Event]:
        """Go on as before, at the service's word or with the first frame of the agent."""
        if not self.window.is_paused:
            return []
        self.window.is_paused = False
        self.window.expire_all(now)
        self._fill_window(now)
        return [PublicationStarted()]

    def _receive_acknowledgement(self, message: AgentMessage, now: float) -> list[Event]:
        sequence = Acknowledgement.decode(message.payload).sequence
        events = self._end_pause(now)
        known = self.window.acknowledge(sequence, now)
        if known and self._probe and self._probe.sequence == sequence:
            self.payload_size = len(self._probe.large)
            self._probe = None
            events.append(ProbeAnswered(passed=True))
        self._fill_window(now)
        return events

    def _receive_stream(self, message: AgentMessage, now: float) -> list[Event]:
        if message.sequence < 0:
            raise ProtocolError(f"output has the sequence number {message.sequence}")
        events = self._end_pause(now)
        if not self._arriving.has_room(message.sequence):
            return events
        acknowledgement = Acknowledgement.of(message)
        frame = acknowledgement.frame(self._new_id(), self._created(now))
        self._outbox.append(frame.encode())  # repeats too: our acknowledgement was lost
        for turn in self._arriving.take(message):
            events += self._deliver(turn, now)
        return events

    def _deliver(self, message: AgentMessage, now: float) -> list[Event]:
        kind, payload = message.payload_type, message.payload
        before, self.state = self.state, self.state.after(step_of(kind))
        if self._cipher and kind in _ENCRYPTED:
            payload = self._cipher.decrypt(payload)
        match kind:
            case PayloadType.HANDSHAKE_REQUEST:
                return self._take_request(HandshakeRequest.decode(payload), now)
            case PayloadType.ENCRYPTION_CHALLENGE_REQUEST:
                return self._take_challenge(EncryptionChallenge.decode(payload), now)
            case PayloadType.HANDSHAKE_COMPLETE:
                self._fill_window(now)
                return [ChannelOpened(HandshakeComplete.decode(payload).customer_message)]
        if before is State.RUNNING:
            return of_stream(kind, payload)
        self._fill_window(now)  # a session without a handshake, which output opens
        return [ChannelOpened(), *of_stream(kind, payload)]

    def _take_request(self, request: HandshakeRequest, now: float) -> list[Event]:
        self._request = request
        if (key_id := requested_key(request)) is not None:
            return [DataKeyRequested(key_id)]
        self._respond(None, now)
        return []

    def _respond(self, key: KeyAnswer | None, now: float) -> None:
        if self.state is not State.HANDSHAKING or self._request is None:
            raise ValueError("no handshake waits for an answer")
        request, self._request = self._request, None
        self._send_frame(PayloadType.HANDSHAKE_RESPONSE, answer(request, key).encode(), now)

    def _take_challenge(self, challenge: EncryptionChallenge, now: float) -> list[Event]:
        if self._cipher is None:
            raise ProtocolError("an encryption challenge in a session without encryption")
        proof = self._cipher.encrypt(self._cipher.decrypt(challenge.challenge))
        payload = EncryptionChallenge(proof).encode()
        self._send_frame(PayloadType.ENCRYPTION_CHALLENGE_RESPONSE, payload, now)
        return []

    def _close(self, notice: ClosingNotice) -> list[Event]:
        self.state = self.state.after(Step.CLOSE)
        self._unsent.clear()
        self._arriving.clear()
        return [ChannelClosed(notice.output)]
