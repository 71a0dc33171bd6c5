"""A websocket that is read when select says so, and written in batches; over websocket-client."""

import os
import ssl
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import websocket

from pyinfra_ssm._entropy import Entropy

# Seconds for connecting, for a frame that has begun to arrive, and for a write to be taken.
_PATIENCE = 20.0
_READ_SIZE = 64 << 10
_REFUSED = (401, 403)  # HTTP statuses


class SocketLost(Exception):
    """The socket is gone or never came to be; a new one may be opened."""


class Websocket:
    """One connection to a stream URL."""

    def __init__(self, url: str, sign: Callable[[str], dict[str, str]]) -> None:
        """`sign` gives the headers for a service that refuses a request without them."""
        try:
            self._socket = _open(url, sign)
        except (websocket.WebSocketException, OSError) as error:
            raise SocketLost(f"cannot connect to {url.split('?')[0]}: {error}") from error
        self._raw: Any = self._socket.sock
        self._ahead = _ReadAhead(self._raw)
        self._socket.sock = self._ahead  # websocket-client reads thrice for a frame
        self._lost: str | None = None
        self._new_key = Entropy()

    def fileno(self) -> int:
        return int(self._raw.fileno())

    @property
    def has_more(self) -> bool:
        """Whether receive() has something to tell that select cannot see."""
        pending = getattr(self._raw, "pending", None)  # of TLS
        return bool(self._ahead.size or self._lost or (pending and pending()))

    def receive(self) -> list[bytes]:
        """Return the binary frames that are here; waits for the rest of one. Pings are answered.

        Raises SocketLost, but only after all that came before the end has been returned.
        """
        frames: list[bytes] = []
        try:
            while self._lost is None:
                if not self._ahead.size and (frames or not self._ahead.fill()):
                    return frames
                frames += self._next()
        except (websocket.WebSocketException, OSError) as error:
            self._lost = str(error)
        if not frames:
            raise SocketLost(self._lost)
        return frames

    def _next(self) -> list[bytes]:
        opcode, frame = self._socket.recv_data_frame(True)
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            code, reason = frame.data[:2], frame.data[2:].decode(errors="replace")
            self._lost = f"closed by the service: {int.from_bytes(code, 'big')} {reason}"
        return [bytes(frame.data)] if opcode == websocket.ABNF.OPCODE_BINARY else []

    def send(self, frames: list[bytes | str]) -> None:
        """Send each as a frame of its own: bytes as binary, str as text."""
        raw = b"".join(self._mask(frame) for frame in frames)
        self._write(raw)

    def ping(self) -> None:
        self._write(self._mask(b"", websocket.ABNF.OPCODE_PING))

    def close(self) -> None:
        self._raw.close()

    def _mask(self, data: bytes | str, opcode: int | None = None) -> bytes:
        if opcode is None:
            text = isinstance(data, str)
            opcode = websocket.ABNF.OPCODE_TEXT if text else websocket.ABNF.OPCODE_BINARY
        frame = websocket.ABNF.create_frame(data, opcode)
        frame.get_mask_key = self._new_key
        raw: bytes = frame.format()
        return raw

    def _write(self, raw: bytes) -> None:
        try:
            self._raw.sendall(raw)
        except OSError as error:
            raise SocketLost(str(error)) from error


def _open(url: str, sign: Callable[[str], dict[str, str]]) -> Any:
    try:
        return _connect(url, {})
    except websocket.WebSocketBadStatusException as error:
        if error.status_code not in _REFUSED:
            raise
        return _connect(url, sign(url))


def _connect(url: str, header: dict[str, str]) -> Any:
    connected = cast(Any, websocket.WebSocket(skip_utf8_validation=True))
    connected.sock_opt.sslopt = {"context": _tls()} if url.startswith("wss:") else {}
    connected.connect(url, timeout=_PATIENCE, suppress_origin=True, header=header)
    return connected


class _ReadAhead:
    """A socket whose reads are served from larger ones."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._buffer, self._at = b"", 0

    @property
    def size(self) -> int:
        """How many bytes are here already."""
        return len(self._buffer) - self._at

    def fill(self) -> bool:
        """Read without waiting; return False if there was nothing.

        What made a TLS socket readable may be a new key or a ticket, and the data after it far off.
        """
        self._raw.settimeout(0)
        try:
            self._buffer, self._at = self._raw.recv(_READ_SIZE), 0
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        finally:
            self._raw.settimeout(_PATIENCE)
        return True

    def recv(self, size: int) -> bytes:
        if not self.size:
            self._buffer, self._at = self._raw.recv(_READ_SIZE), 0
        data = self._buffer[self._at : self._at + size]
        self._at += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


@cache
def _tls() -> ssl.SSLContext:
    """Return one verifying context for all hosts: each costs the whole list of authorities."""
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE"))  # as boto3 does
