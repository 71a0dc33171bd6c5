"""The fingerprints that the cuda fact reads out of a keyring."""

import hashlib
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.facts.cuda import fingerprints, packets
from tests.container.upstreams.apt_repository import signer

PUBLIC_KEY, USER_ID = 6, 13


def old_format(tag, body):
    width = next(code for code in range(3) if len(body) < 256 ** (1 << code))
    return bytes([0x80 | tag << 2 | width]) + len(body).to_bytes(1 << width, "big") + body


def new_format(tag, body):
    size = len(body)
    if size < 192:
        length = bytes([size])
    elif size < 8384:
        length = bytes([192 + (size - 192 >> 8), (size - 192) & 0xFF])
    else:
        length = b"\xff" + size.to_bytes(4, "big")
    return bytes([0xC0 | tag]) + length + body


# Sizes on both sides of each change of the length's width.
SIZES = st.sampled_from([0, 1, 191, 192, 193, 255, 256, 8383, 8384, 65535, 65536])
BODIES = SIZES.flatmap(
    lambda size: st.binary(min_size=1, max_size=8).map(lambda b: (b * size)[:size])
)
PACKETS = st.lists(st.tuples(st.integers(0, 15), BODIES, st.sampled_from([old_format, new_format])))


@given(PACKETS)
def test_packets_of_both_formats_are_read(chosen):
    data = b"".join(encode(tag, body) for tag, body, encode in chosen)
    assert list(packets(data)) == [(tag, body) for tag, body, _ in chosen]


@given(PACKETS, st.integers(1, 70000))
def test_a_keyring_that_is_cut_short_gives_the_packets_that_are_whole(chosen, lost):
    whole = b"".join(encode(tag, body) for tag, body, encode in chosen)
    found = list(packets(whole[:-lost]))
    assert found == [(tag, body) for tag, body, _ in chosen][: len(found)]


@given(st.binary())
def test_any_bytes_are_read(data):
    for fingerprint in fingerprints(data):
        assert len(fingerprint) == 40


def test_only_primary_keys_of_version_4_count():
    key = b"\x04" + bytes(20)
    keyring = old_format(PUBLIC_KEY, key) + new_format(PUBLIC_KEY, b"\x06...") + old_format(14, key)
    framed = b"\x99\x00\x15" + key
    assert fingerprints(keyring) == [hashlib.sha1(framed).hexdigest().upper()]


@pytest.mark.skipif(shutil.which("gpg") is None, reason="makes a key with gpg")
def test_the_fingerprint_is_the_one_that_gpg_tells(tmp_path):
    with signer() as key:
        key.public_key(tmp_path / "key.gpg")
        assert fingerprints((tmp_path / "key.gpg").read_bytes()) == [key.fingerprint]
