import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm.emulator.output_filter import OutputFilter

# Reads, and what the recorded agent sent for each (09_output_corruption, 09_noninteractive_bytes).
RECORDED = {
    "U+FFFD passes as its first byte": ([b"A\xef\xbf\xbdB\nEND\n"], [b"A\xefB\nEND\n"]),
    "other bad bytes pass": ([b"A\xff\xfe\x80C\nEND\n"], [b"A\xff\xfe\x80C\nEND\n"]),
    "text passes": (["café 😀\nEND\n".encode()], ["café 😀\nEND\n".encode()]),
    "a bad last byte waits": ([b"x\xff", b"\nEND\n"], [b"x", b"\xff\nEND\n"]),
    "half a character waits": ([b"y\xc3", b"\xa9\nEND\n"], [b"y", b"\xc3\xa9\nEND\n"]),
    "NUL passes": ([b"z\0z\nEND\n"], [b"z\0z\nEND\n"]),
    "bad bytes at the end are lost": ([b"tail\xff\xfe"], [b"tail"]),
    "good bytes behind them too": ([b"A\xef\xbf\xbdB\xff\xfeC\n"], [b"A\xefB\xff"]),
}


@pytest.mark.parametrize(("reads", "sent"), RECORDED.values(), ids=RECORDED)
def test_output_is_damaged_as_recorded(reads: list[bytes], sent: list[bytes]) -> None:
    output_filter = OutputFilter()
    assert [output_filter.feed(read) for read in reads] == sent


@given(st.text(st.characters(exclude_characters="\ufffd", codec="utf-8")), st.data())
def test_text_passes_however_it_is_cut(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cut = data.draw(st.integers(0, len(raw)))
    output_filter = OutputFilter()
    # Three bytes of ASCII push out what the filter may keep of the end.
    assert b"".join(map(output_filter.feed, (raw[:cut], raw[cut:], b"..."))) == raw + b"..."


@given(st.lists(st.binary(max_size=20)))
def test_bytes_are_lost_but_never_invented_or_swapped(reads: list[bytes]) -> None:
    output_filter = OutputFilter()
    rest = iter(b"".join(reads))
    assert all(byte in rest for byte in b"".join(map(output_filter.feed, reads)))
