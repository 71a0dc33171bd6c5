import random
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm.remote import framing
from pyinfra_ssm.remote.framing import (
    LARGEST_BODY,
    ArmourDecoder,
    Decoder,
    Frame,
    FramingError,
    Kind,
    armour,
    encode,
)

frames = st.builds(
    Frame, st.sampled_from(Kind).map(int), st.integers(0, 2**32 - 1), st.binary(max_size=400)
)
noise = st.binary(max_size=60).map(lambda data: data.replace(b"\x1e", b""))


def in_pieces(data: Any, raw: bytes) -> Iterator[Any]:
    """Cut `raw` into pieces of the sizes that hypothesis draws."""
    while raw:
        size = data.draw(st.integers(1, 64))
        yield raw[:size]
        raw = raw[size:]


@given(st.lists(frames, max_size=5), st.integers(0, 9), st.data())
def test_frames_come_back_whatever_the_pieces(sent: Any, level: Any, data: Any) -> None:
    decoder = Decoder()
    raw = b"".join(encode(frame, level) for frame in sent)
    assert [frame for piece in in_pieces(data, raw) for frame in decoder.feed(piece)] == sent


@given(st.lists(st.tuples(noise, frames), max_size=5), st.data())
def test_armoured_frames_come_back_from_between_whatever_else_is_printed(
    sent: Any, data: Any
) -> None:
    decoder = ArmourDecoder()
    raw = b"".join(banner + armour(frame) for banner, frame in sent)
    received = [frame for piece in in_pieces(data, raw) for frame in decoder.feed(piece)]
    assert received == [frame for _, frame in sent]
    assert bytes(decoder.noise) == b"".join(banner for banner, _ in sent)


@given(frames)
def test_armour_is_ascii_that_the_agent_leaves_alone(frame: Any) -> None:
    line = armour(frame)
    assert line[:1] == b"\x1e"
    assert line[-1:] == b"\n"
    assert all(0x20 < byte < 0x7F for byte in line[1:-1])


@pytest.mark.parametrize("decoder", [Decoder, ArmourDecoder])
@given(pieces=st.lists(st.binary(max_size=60) | frames.map(encode) | frames.map(armour)))
def test_any_bytes_give_frames_or_a_framing_error(decoder: Any, pieces: list[bytes]) -> None:
    reader = decoder()
    for piece in pieces:
        try:
            reader.feed(piece)
        except FramingError:
            return


@given(frames, st.data())
def test_no_flipped_bit_passes(frame: Any, data: Any) -> None:
    raw = bytearray(encode(frame))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    try:
        received = Decoder().feed(bytes(raw))
    except FramingError:
        return
    assert received == []  # it waits for what a longer length promises


def test_what_compresses_is_smaller_and_what_does_not_is_no_larger() -> None:
    assert len(encode(Frame(Kind.STDOUT, 1, b"x" * 10_000))) < 100
    body = random.Random(1).randbytes(10_000)
    assert len(encode(Frame(Kind.STDOUT, 1, body))) == 14 + 10_000


def test_a_body_beyond_the_limit_is_refused_at_both_ends() -> None:
    with pytest.raises(FramingError, match="at most"):
        encode(Frame(Kind.RUN, 1, bytes(LARGEST_BODY + 1)))
    with pytest.raises(FramingError, match="at most"):
        Decoder().feed(b"\x01\0" + bytes(4) + b"\xff" * 8)


def test_a_bomb_is_not_unpacked() -> None:
    body = zlib.compress(bytes(LARGEST_BODY + 1))
    header = framing._HEADER.pack(Kind.STDOUT, 1, 1, len(body))
    raw = header + framing._SUM.pack(zlib.crc32(body, zlib.crc32(header))) + body
    with pytest.raises(FramingError, match="decompresses to over"):
        Decoder().feed(raw)
