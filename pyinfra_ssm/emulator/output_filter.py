"""What the agent does to the bytes of a terminal or a command before it sends them.

It decodes UTF-8 runes and writes them back, but a byte that is no rune and lies in the last three
of what was read is kept for the next read, a valid U+FFFD passes as its first byte alone, and what
is still kept when the process ends is lost (`processStdoutData` in the agent's
https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/shell/shell.go; recorded).
"""

_LONGEST_RUNE = 4
_REPLACEMENT = "\ufffd".encode()


class OutputFilter:
    """Feed it what was read; it returns what the agent sends, which may be nothing."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, read: bytes) -> bytes:
        data = self._kept + read
        if data.isascii():
            self._kept = b""
            return data
        sent, start = bytearray(), 0
        while start < len(data):
            width = _rune_width(data, start)
            if width and data[start : start + width] != _REPLACEMENT:
                sent += data[start : start + width]
            elif len(data) - start < _LONGEST_RUNE:
                break
            else:
                sent.append(data[start])
            start += width or 1
        self._kept = data[start:]
        return bytes(sent)


def _rune_width(data: bytes, start: int) -> int:
    """Return how many bytes the rune at `start` has, or 0 if there is no valid one."""
    first = data[start]
    if first < 0x80:
        return 1
    width = 2 if first < 0xE0 else 3 if first < 0xF0 else _LONGEST_RUNE
    try:
        data[start : start + width].decode()
    except UnicodeDecodeError:
        return 0
    return width if start + width <= len(data) else 0
