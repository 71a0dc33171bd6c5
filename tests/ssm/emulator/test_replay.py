"""What recorded clients sent is sent again: the emulated agent answers as the recorded one did.

Compared are the acknowledgements, byte for byte and in order, and the output of each payload type.
How output is cut into frames depends on the moment, in the recordings too.
"""

import json
import re
from collections.abc import Iterator

import pytest

from pyinfra_ssm._messages import AgentMessage, Flags, MessageType, PayloadType
from pyinfra_ssm.emulator import Emulator
from tests.ssm.emulator.client import (
    Client,
    assert_input_is_clean,
    assert_interrupt_ends_it,
    non_interactive,
)
from tests.ssm.vectors import Recorded, recorded

# Left out, with tests of their own: 06b, which never acknowledges; 07 and 07b, which depend on the
# moment of the cut; 10 and 12, whose clients sent blindly 0.3 s after the command; the ports of 05,
# 14 and 15 (test_port.py) and Run Command (test_run_command.py).
REPLAYED = [
    "01_shell_plugin",
    "02_interactive_framed",
    "03_noninteractive_separate",
    "03b_noninteractive_merged",
    "04_noninteractive_handshake_plugin",
    "06_duplicate_reorder",
    "08a_closed_after_exit",
    "08b_closed_after_terminate",
    "08c_closed_after_flag",
    "09_noninteractive_bytes_sep_false",
    "09_noninteractive_bytes_sep_true",
    "09_output_corruption",
    "13_noninteractive_not_found",
]


@pytest.mark.parametrize("name", REPLAYED)
def test_the_agent_answers_as_recorded(shared: Emulator, name: str) -> None:
    frames = recorded(name)
    client = _start(shared, frames)
    wanted = _Transcript()
    for frame, message in _messages(frames):
        if frame.sender == "client":
            _await(client, wanted)
            client.send_raw(frame.raw)
        elif message.message_type == MessageType.CHANNEL_CLOSED and client.closed is None:
            _await(client, wanted)
            if not wanted.has_ended:
                client.ssm.terminate_session(SessionId=client.session_id)
            client.until_closed()
        else:
            wanted.add(message)
    assert client.acks == wanted.acks
    assert {kind: _neutral(client.text(kind)) for kind in wanted.text} == wanted.text
    assert [m.flags for m in client.outputs.values()][:2] == [Flags.SYN, Flags.NONE][
        : len(client.outputs)
    ]


class _Transcript:
    """What the recorded agent has sent so far."""

    def __init__(self) -> None:
        self.acks: list[bytes] = []
        self.text: dict[int, bytes] = {}
        self.has_ended = False

    def add(self, message: AgentMessage) -> None:
        if message.message_type == MessageType.ACKNOWLEDGE:
            self.acks.append(message.payload)
        elif message.message_type == MessageType.OUTPUT:
            so_far = self.text.get(message.payload_type, b"")
            self.text[message.payload_type] = so_far + _neutral(message.payload)
        elif message.message_type == MessageType.SESSION_STATE:
            self.has_ended = json.loads(message.payload)["SessionState"] == "Terminating"


def _await(client: Client, wanted: _Transcript) -> None:
    """Receive what the recorded client had received by then."""
    client.until(
        lambda: (
            len(client.acks) >= len(wanted.acks)
            and all(len(_neutral(client.text(k))) >= len(v) for k, v in wanted.text.items())
        )
    )


def _neutral(text: bytes) -> bytes:
    """Return output without what differs from run to run: who runs it, and how long it took."""
    text = re.sub(rb"^\$ ", b"# ", text)
    return re.sub(rb'"HandshakeTimeToComplete":\d+', b'"HandshakeTimeToComplete":0', text)


def _start(emulator: Emulator, frames: list[Recorded]) -> Client:
    """Start the session that the service asked of the recorded agent; the client acks itself."""
    asked = json.loads(json.loads(frames[0].fields["payload"])["Content"])
    parameters = asked["Parameters"]
    return Client(emulator, asked["DocumentName"], acknowledges=False, **parameters)


def _messages(frames: list[Recorded]) -> Iterator[tuple[Recorded, AgentMessage]]:
    for frame in frames:
        if frame.channel == "data" and frame.kind == "binary":
            yield frame, AgentMessage.decode(frame.raw)


def test_unacknowledged_output_is_sent_again_but_only_its_oldest_frame(shared: Emulator) -> None:
    client = Client(shared, "Root-Shell", acknowledges=False)
    client.until(lambda: 0 in client.outputs)
    client.send(b"PS1=; echo 'REA''DY'\n")
    client.until(lambda: client.text().endswith(b"READY\n"))
    client.received.clear()
    while len(client.received) < 3:
        client.receive()
    assert {m.sequence for m in client.received} == {0}
    assert {m.encode() for m in client.received} == {client.outputs[0].encode()}
    client.close()


def test_output_goes_on_with_its_numbers_after_a_cut(shared: Emulator) -> None:
    client = Client(shared, "Root-Shell")
    client.expect(b"# ")
    client.send(b"PS1=; for i in $(seq 30); do echo line$i; sleep 0.02; done; echo E''ND\n")
    client.expect(b"line3\n")
    client.resume()
    lines = b"".join(b"line%d\n" % number for number in range(1, 31))
    assert client.expect(b"END\n") == b"# " + lines + b"END\n"
    assert sorted(client.outputs) == list(range(len(client.outputs)))
    client.close()


def test_input_is_eight_bit_clean_in_raw_mode(shared: Emulator) -> None:
    assert_input_is_clean(Client(shared, "Root-Shell"))


@pytest.mark.parametrize(("separate", "wanted"), [("True", b"EXIT_CODE: 3"), ("False", b"")])
def test_exit_codes_are_sent_only_with_separate_streams(
    shared: Emulator, separate: str, wanted: bytes
) -> None:
    client = non_interactive(shared, "sh -c 'exit 3'", separate)
    assert client.until_closed() == ""
    assert client.text(PayloadType.EXIT_CODE) == wanted


def test_an_interrupted_command_reports_one(shared: Emulator) -> None:
    assert_interrupt_ends_it(shared)


def test_a_command_killed_by_a_signal_reports_minus_one(shared: Emulator) -> None:
    client = non_interactive(shared, "sh -c 'kill -9 $$'")
    client.until_closed()
    assert client.text(PayloadType.EXIT_CODE) == b"EXIT_CODE: -1"
