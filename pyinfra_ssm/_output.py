"""Output as pyinfra wants it: lines of text, in order of arrival; pure."""

from collections.abc import Callable, Iterable

from pyinfra.connectors.util import CommandOutput, OutputLine

from pyinfra_ssm._transport import Stream


class Lines:
    """Collects pieces of output; each line is told once it is complete.

    Text is decoded a line at a time, so that no character is cut between two pieces, and what is
    not UTF-8 becomes U+FFFD rather than an error.
    """

    def __init__(self, on_line: Callable[[Stream, str], None], terminal: bool = False) -> None:
        self._on_line = on_line
        self._line_end = b"\r\n" if terminal else b"\n"  # a terminal writes both
        self._parts: dict[Stream, bytearray] = {stream: bytearray() for stream in Stream}
        self._lines: list[OutputLine] = []

    def add(self, stream: Stream, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        part = self._parts[stream]
        for line in lines:
            part += line + b"\n"
            self._tell(stream, bytes(part).removesuffix(self._line_end).removesuffix(b"\n"))
            part.clear()
        part += rest

    def finish(self) -> CommandOutput:
        """Return all lines, with what had no newline at its end."""
        for stream, part in self._parts.items():
            if part:
                self._tell(stream, bytes(part))
                part.clear()
        return CommandOutput(self._lines)

    def _tell(self, stream: Stream, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        self._lines.append(OutputLine(stream.value, text))
        self._on_line(stream, text)


def stdin_bytes(stdin: object) -> bytes:
    """Return pyinfra's `_stdin` (text, lines, or something with readlines) as it is to be read.

    Anything else is a TypeError.

    Each element ends in a newline, as in pyinfra's own connectors.
    """
    if stdin is None:
        return b""
    readlines = getattr(stdin, "readlines", None)
    lines = readlines() if callable(readlines) else stdin
    if isinstance(lines, str | bytes):
        lines = [lines]
    if not isinstance(lines, Iterable):
        raise TypeError(f"_stdin is {stdin!r}, wanted text, lines or a file")
    return b"".join(_line(line) for line in lines)


def _line(line: str | bytes) -> bytes:
    data = line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape")
    return data if data.endswith(b"\n") else data + b"\n"
