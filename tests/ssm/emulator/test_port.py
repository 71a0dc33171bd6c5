"""Port sessions: recordings 05, 14 and 15, with a listener of the test's own."""

import json
import socket
import socketserver
from collections.abc import Callable, Iterator

import pytest

from pyinfra_ssm._messages import PayloadType, SessionFlag
from pyinfra_ssm._payloads import HandshakeRequest
from pyinfra_ssm.emulator import Emulator
from tests.loopback import serving
from tests.ssm.emulator.client import Client


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


@pytest.fixture
def port() -> Iterator[int]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo)
    server.daemon_threads = True
    with serving(server):
        yield server.server_address[1]


def connect(emulator: Emulator, port: int) -> Client:
    return Client(emulator, "AWS-StartSSHSession", portNumber=str(port))


def test_bytes_are_clean_both_ways_and_a_flag_ends_the_session(shared: Emulator, port: int) -> None:
    client = connect(shared, port)
    client.shake_hands()
    client.until(lambda: 1 in client.outputs)
    (action,) = HandshakeRequest.decode(client.outputs[0].payload).actions
    assert action.parameters == {"SessionType": "Port", "Properties": {"portNumber": str(port)}}
    everything = bytes(range(256)) + b"\xef\xbf\xbd\xff"
    client.send(everything)
    client.until(lambda: client.text() == everything)
    client.send(SessionFlag.TERMINATE_SESSION.encode(), PayloadType.FLAG)
    client.until_closed()


def test_input_before_the_handshake_is_acknowledged_and_lost(shared: Emulator, port: int) -> None:
    client = connect(shared, port)
    client.send_ahead(b"early")
    client.shake_hands()
    client.until(lambda: 1 in client.outputs)
    client.skip()
    client.send(b"late")
    client.until(lambda: client.text() == b"late")
    assert [json.loads(ack)["AcknowledgedMessageSequenceNumber"] for ack in client.acks] == [
        1,
        0,
        2,
    ]
    client.close()


def test_a_closed_port_is_silence_and_then_an_error(start: Callable[..., Emulator]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    client = connect(start(port_refused_s=0.1), port)
    client.shake_hands()
    assert "document process failed unexpectedly" in client.until_closed()
    assert client.text() == b""
