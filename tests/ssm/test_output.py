import io
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm._output import Lines, stdin_bytes
from pyinfra_ssm._transport import Stream


def collect(pieces: list[tuple[Stream, bytes]], terminal: Any = False) -> Any:
    lines = Lines(lambda *_: None, terminal)
    for stream, data in pieces:
        lines.add(stream, data)
    return lines.finish()


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_lines_do_not_depend_on_the_pieces(data: Any, cuts: Any) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [(Stream.STDOUT, data[a:b]) for a, b in pairwise(edges)]
    text = data.decode("utf-8", "replace")
    wanted = text.removesuffix("\n").split("\n") if text else []
    assert collect(pieces).stdout_lines == wanted


def test_streams_are_apart_and_lines_in_order_of_arrival() -> None:
    output = collect(
        [
            (Stream.STDOUT, b"one\ntw"),
            (Stream.STDERR, b"bad\n"),
            (Stream.STDOUT, b"o"),
        ]
    )
    assert [(line.buffer_name, line.line) for line in output] == [
        ("stdout", "one"),
        ("stderr", "bad"),
        ("stdout", "two"),
    ]


def test_a_terminals_line_end_is_taken_off_and_a_commands_own_is_kept() -> None:
    pieces = [(Stream.STDOUT, b"a\r\nb\r\n")]
    assert collect(pieces, terminal=True).stdout_lines == ["a", "b"]
    assert collect(pieces).stdout_lines == ["a\r", "b\r"]


STDIN = {
    "nothing": (None, b""),
    "text": ("one", b"one\n"),
    "text with its newline": ("one\n", b"one\n"),
    "lines": (["one", "two\n"], b"one\ntwo\n"),
    "any iterable": (iter(["one", b"two"]), b"one\ntwo\n"),
    "a file": (io.StringIO("one\ntwo"), b"one\ntwo\n"),
    "bytes": (b"\xff", b"\xff\n"),
    "not ASCII": ("caf\u00e9", b"caf\xc3\xa9\n"),
}


@pytest.mark.parametrize(("stdin", "data"), STDIN.values(), ids=STDIN)
def test_stdin_is_what_pyinfras_own_connectors_make_of_it(stdin: Any, data: Any) -> None:
    assert stdin_bytes(stdin) == data
