"""The socket itself: who it trusts, what it makes of an end."""

import base64
import datetime
import hashlib
import re
import select
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from ipaddress import IPv4Address
from pathlib import Path
from socket import create_server, socket

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pyinfra_ssm._websocket import SocketLost, Websocket, _ReadAhead, _tls

LIMIT = 30  # seconds for a thread to end
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of RFC 6455


def unsigned(_: str) -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that no authority has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def tls_port(certificate: Path) -> Iterator[int]:
    """A port on which somebody shows that certificate to whoever connects."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with closing(create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=_show_certificate, args=(listener, context))
        thread.start()
        yield listener.getsockname()[1]
        thread.join(LIMIT)


def _show_certificate(listener: socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    with closing(connection), pytest.raises(ssl.SSLError):
        context.wrap_socket(connection, server_side=True)


def test_a_certificate_that_nobody_vouches_for_is_refused(tls_port: int) -> None:
    with pytest.raises(SocketLost, match="certificate verify failed"):
        Websocket(f"wss://127.0.0.1:{tls_port}/v1/data-channel/session?token=secret", unsigned)


@pytest.fixture
def echo_port(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port on which a websocket, over TLS that is trusted, sends back the first frame."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    _tls.cache_clear()
    with closing(create_server(("127.0.0.1", 0))) as listener:
        thread = threading.Thread(target=_echo_once, args=(listener, context))
        thread.start()
        yield listener.getsockname()[1]
        thread.join(LIMIT)
    _tls.cache_clear()


def _echo_once(listener: socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    with closing(context.wrap_socket(connection, server_side=True)) as tls:
        request = b""
        while b"\r\n\r\n" not in request:
            request += tls.recv(4096)
        (key,) = re.findall(rb"Sec-WebSocket-Key: (\S+)", request)
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        tls.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n")
        tls.sendall(b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        header, mask = tls.recv(2), tls.recv(4)
        size = header[1] & 0x7F
        payload = bytes(b ^ mask[i % 4] for i, b in enumerate(tls.recv(size)))
        tls.sendall(bytes([0x82, size]) + payload)
        tls.recv(1)  # until the client has closed


def test_frames_pass_over_tls(echo_port: int) -> None:
    with closing(Websocket(f"wss://127.0.0.1:{echo_port}/session", unsigned)) as websocket:
        assert websocket.receive() == []  # nothing is here, and nothing is waited for
        websocket.send([b"frame"])
        select.select([websocket], [], [], LIMIT)
        assert websocket.receive() == [b"frame"]


class OnlyBetweenRecords:
    """A TLS socket to which something came that is no data: a new key, a ticket."""

    def recv(self, size: int) -> bytes:
        raise ssl.SSLWantReadError

    def settimeout(self, seconds: float) -> None:
        assert seconds >= 0


def test_tls_of_its_own_does_not_hold_up_the_reader() -> None:
    assert not _ReadAhead(OnlyBetweenRecords()).fill()


def test_a_port_where_nobody_listens_is_named_without_its_query() -> None:
    with closing(create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SocketLost) as caught:
        Websocket(f"ws://127.0.0.1:{port}/session?token=secret", unsigned)
    assert f"127.0.0.1:{port}" in str(caught.value)
    assert "secret" not in str(caught.value)
