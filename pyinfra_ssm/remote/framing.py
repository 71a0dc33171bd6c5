"""Frames between the connector and its program on the host, as bytes and as armoured text.

Towards the host a frame is binary, since a raw terminal takes every byte. From the host it is one
line of base64 between 0x1E and a newline: the agent damages output that is not UTF-8, and whatever
else lands on the terminal (banners, broadcasts) then lies outside of the lines and is passed over.

    offset  size  field
         0     1  kind
         1     1  1 if the body is compressed with zlib
         2     4  ident       which request this belongs to; 0 for the session as a whole
         6     4  length      of the body
        10     4  CRC-32      of the ten bytes above and the body: the agent checks no digest
        14     n  body
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

_HEADER = struct.Struct("!BBII")
_SUM = struct.Struct("!I")
_OVERHEAD = _HEADER.size + _SUM.size
START, END = b"\x1e", b"\n"

# A request holds a whole command and its environment; Linux takes 2 MiB of those at most.
LARGEST_BODY = 4 << 20
# Of file content and output in one frame: a quarter of a second on the slow way out.
CHUNK = 64 << 10
_WORTH_COMPRESSING = 128  # bytes; below this zlib's own header eats the gain


class Kind(IntEnum):
    """What a frame is. JSON bodies are described where they are made."""

    # to the host
    RUN = 1  # JSON
    INPUT = 2  # stdin of a command; an empty body closes it
    CANCEL = 3
    PUT = 4  # JSON
    CONTENT = 5  # of a file, both ways
    CONTENT_END = 6  # JSON, both ways: size and SHA-256
    GET = 7  # JSON
    PING = 8
    LEAVE = 9
    # from the host
    HELLO = 32
    STDOUT = 33
    STDERR = 34
    EXITED = 35  # JSON
    STORED = 36  # a PUT is in place
    FAILED = 37  # JSON
    PONG = 38


class FramingError(Exception):
    """Bytes that no peer of this protocol sends."""


class Frame(NamedTuple):
    kind: int
    ident: int
    body: bytes = b""


def encode(frame: Frame, level: int = 1) -> bytes:
    """Return the frame as bytes, compressed at zlib's `level` where that makes it smaller."""
    if len(frame.body) > LARGEST_BODY:
        raise FramingError(f"body of {len(frame.body)} bytes, at most {LARGEST_BODY} go")
    body, packed = frame.body, False
    if level and len(body) >= _WORTH_COMPRESSING:
        smaller = zlib.compress(body, level)
        packed = len(smaller) < len(body)
        body = smaller if packed else body
    header = _HEADER.pack(frame.kind, packed, frame.ident, len(body))
    return header + _SUM.pack(zlib.crc32(body, zlib.crc32(header))) + body


def armour(frame: Frame, level: int = 6) -> bytes:
    """Return the frame as a line of ASCII, for the way out of the host."""
    return START + base64.b64encode(encode(frame, level)) + END


class Decoder:
    """Frames out of a stream of their bytes. Total: feed() gives frames or FramingError."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        self._buffer += data
        return list(self._frames())

    def _frames(self) -> Iterator[Frame]:
        while len(self._buffer) >= _OVERHEAD:
            length = _HEADER.unpack_from(self._buffer)[3]
            if length > LARGEST_BODY:
                raise FramingError(f"body of {length} bytes, at most {LARGEST_BODY} go")
            if len(self._buffer) < _OVERHEAD + length:
                return
            raw = bytes(self._buffer[: _OVERHEAD + length])
            del self._buffer[: _OVERHEAD + length]
            yield _decode(raw)


class ArmourDecoder:
    """Frames out of terminal output; what lies between the lines is kept apart as noise."""

    # The beginning of what is no frame explains a failed start: a banner, an error of sudo.
    NOISE_KEPT = 8 << 10
    LONGEST_LINE = LARGEST_BODY * 4 // 3 + 64

    def __init__(self) -> None:
        self.noise = bytearray()
        self._buffer = bytearray()
        self._inside = False

    def feed(self, data: bytes) -> list[Frame]:
        frames = []
        while data:
            head, mark, data = data.partition(END if self._inside else START)
            if not self._inside:
                self.noise += head[: self.NOISE_KEPT - len(self.noise)]
                self._inside = bool(mark)
                continue
            self._buffer += head
            if len(self._buffer) > self.LONGEST_LINE:
                raise FramingError(f"a line of over {self.LONGEST_LINE} characters")
            if mark:
                line, self._buffer, self._inside = bytes(self._buffer), bytearray(), False
                frames.append(_strip(line))
        return frames


def _strip(line: bytes) -> Frame:
    try:
        return _decode(base64.b64decode(line.rsplit(START)[-1]))
    except binascii.Error as error:
        raise FramingError(f"a line that is not base64: {line[:60]!r}") from error


def _decode(raw: bytes) -> Frame:
    if len(raw) < _OVERHEAD:
        raise FramingError(f"frame of {len(raw)} bytes; a header alone is {_OVERHEAD}")
    kind, packed, ident, length = _HEADER.unpack_from(raw)
    body = raw[_OVERHEAD:]
    if length != len(body) or packed > 1:
        raise FramingError(f"a header that does not fit its {len(body)} bytes of body")
    if _SUM.unpack_from(raw, _HEADER.size)[0] != zlib.crc32(body, zlib.crc32(raw[: _HEADER.size])):
        raise FramingError(f"a frame of kind {kind} has a wrong checksum")
    return Frame(kind, ident, _unpack(body) if packed else body)


def _unpack(body: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(body, LARGEST_BODY)
    except zlib.error as error:
        raise FramingError("a body that does not decompress") from error
    if not stream.eof or stream.unconsumed_tail:
        raise FramingError(f"a body that decompresses to over {LARGEST_BODY} bytes")
    return data
