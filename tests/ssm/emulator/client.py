"""A plain client of the data channel, for tests of the emulator: it hides nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import botocore.config
import botocore.session
import websocket

from pyinfra_ssm._messages import AgentMessage, MessageType, PayloadType
from pyinfra_ssm._payloads import (
    Acknowledgement,
    ActionStatus,
    ActionType,
    HandshakeResponse,
    OpenDataChannel,
    ProcessedAction,
)
from pyinfra_ssm.emulator import DEFAULT_ID, Emulator

TIME_LIMIT = 20  # seconds without a frame after which a test fails rather than hangs


def service(emulator: Emulator, name: str) -> Any:
    """Return a botocore client that talks to the emulator and retries nothing."""
    return botocore.session.get_session().create_client(
        name,
        endpoint_url=emulator.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=botocore.config.Config(retries={"total_max_attempts": 1}),
    )


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that only waits for its parent to notice does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def non_interactive(emulator: Emulator, command: str, separate: str = "True") -> "Client":
    """Start a command without a terminal, and shake hands."""
    client = Client(
        emulator,
        "AWS-StartNonInteractiveCommand",
        command=command,
        separateOutputStream=separate,
    )
    client.shake_hands()
    return client


def assert_interrupt_ends_it(emulator: Emulator) -> None:
    """Recorded in 12, but for the command that says when it can be interrupted."""
    client = non_interactive(emulator, "sh -c 'echo up; exec sleep 60'")
    client.expect(b"up\n")
    client.send(b"\x03")
    client.until_closed()
    assert client.text(PayloadType.EXIT_CODE) == b"EXIT_CODE: 1"


def assert_input_is_clean(client: "Client") -> None:
    """Send every byte to a root shell in raw mode, as in 10, once it says that it is ready."""
    client.expect(b"# ")
    client.send(b"PS1=; echo RE''ADY; head -c 256 | od -An -v -tx1 | tr -d ' \\n'; echo E''ND\n")
    client.expect(b"READY\n")
    client.send(bytes(range(256)))
    assert client.expect(b"END\n").endswith(bytes(range(256)).hex().encode() + b"END\n")
    client.close()


class Client:
    """One session. `outputs` has each output frame once, `acks` every acknowledgement."""

    def __init__(
        self,
        emulator: Emulator,
        document: str = "AWS-StartInteractiveCommand",
        *,
        acknowledges: bool = True,
        target: str = DEFAULT_ID,
        **parameters: str,
    ) -> None:
        self.ssm = service(emulator, "ssm")
        self._acknowledges = acknowledges
        listed = {name: [value] for name, value in parameters.items()}
        started = self.ssm.start_session(Target=target, DocumentName=document, Parameters=listed)
        self.session_id: str = started["SessionId"]
        self.outputs: dict[int, AgentMessage] = {}
        self.received: list[AgentMessage] = []
        self.acks: list[bytes] = []
        self.closed: AgentMessage | None = None
        self._sequence = 0
        self.connect(started["StreamUrl"], started["TokenValue"])

    def connect(self, url: str, token: str) -> None:
        self._socket = websocket.create_connection(url, timeout=TIME_LIMIT)
        self._socket.send(OpenDataChannel(token, uuid4(), uuid4()).encode())

    def resume(self) -> None:
        """Drop the socket and take up the session on another."""
        self._socket.close()
        resumed = self.ssm.resume_session(SessionId=self.session_id)
        self.connect(resumed["StreamUrl"], resumed["TokenValue"])

    def close(self) -> None:
        self._socket.close()
        self.ssm.terminate_session(SessionId=self.session_id)

    def closing(self) -> tuple[int, bytes]:
        """Receive until the service closes the socket; return its code and reason."""
        while True:
            opcode, data = self._socket.recv_data()
            if opcode == websocket.ABNF.OPCODE_CLOSE:
                return int.from_bytes(data[:2], "big"), data[2:]

    def shake_hands(self) -> None:
        """Answer the agent's handshake, in the words of the reference plug-in."""
        self.until(lambda: 0 in self.outputs)
        action = ProcessedAction(ActionType.SESSION_TYPE, ActionStatus.SUCCESS)
        self.send(HandshakeResponse((action,)).encode(), PayloadType.HANDSHAKE_RESPONSE)

    def send(self, payload: bytes, payload_type: int = PayloadType.OUTPUT) -> None:
        """Send one frame of input."""
        self.repeat(payload, payload_type)
        self._sequence += 1

    def repeat(self, payload: bytes, payload_type: int = PayloadType.OUTPUT) -> None:
        """Send the next frame of input, but count it as not sent."""
        self._send(payload, payload_type, self._sequence)

    def send_ahead(self, payload: bytes) -> None:
        """Send the frame after the next; skip() counts it, once the next is sent."""
        self._send(payload, PayloadType.OUTPUT, self._sequence + 1)

    def skip(self) -> None:
        self._sequence += 1

    def _send(self, payload: bytes, payload_type: int, sequence: int) -> None:
        frame = AgentMessage(
            MessageType.INPUT, uuid4(), payload, sequence=sequence, payload_type=payload_type
        )
        self.send_raw(frame.encode())

    def send_raw(self, raw: bytes) -> None:
        self._socket.send_binary(raw)

    def receive(self) -> AgentMessage:
        """Wait for one frame and keep account of it."""
        raw = self._socket.recv()
        assert isinstance(raw, bytes), f"text frame from the service: {raw}"
        message = AgentMessage.decode(raw)
        self.received.append(message)
        if message.message_type == MessageType.OUTPUT:
            self.outputs.setdefault(message.sequence, message)
            if self._acknowledges:
                self.send_raw(Acknowledgement.of(message).frame(uuid4(), 0).encode())
        elif message.message_type == MessageType.ACKNOWLEDGE:
            self.acks.append(message.payload)
        elif message.message_type == MessageType.CHANNEL_CLOSED:
            self.closed = message
        return message

    def until(self, is_reached: Callable[[], bool]) -> None:
        """Receive until something is so; fail if the session ends before."""
        while not is_reached():
            assert self.closed is None, f"the session ended: {self.closed}"
            self.receive()

    def until_closed(self) -> str:
        """Receive until the session ends; return the reason, empty for an ordinary end."""
        self.until(lambda: self.closed is not None)
        assert self.closed is not None
        return str(json.loads(self.closed.payload)["Output"])

    def text(self, payload_type: int = PayloadType.OUTPUT) -> bytes:
        """Return what came of one type of payload, in order, up to the first gap."""
        parts = []
        for number in range(len(self.outputs)):
            if number not in self.outputs:
                break
            if self.outputs[number].payload_type == payload_type:
                parts.append(self.outputs[number].payload)
        return b"".join(parts)

    def expect(self, ending: bytes) -> bytes:
        """Receive until the output ends so; return all output of this session."""
        self.until(lambda: self.text().endswith(ending))
        return self.text()
