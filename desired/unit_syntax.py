"""systemd's own quoting: words of an ExecStart= line and lines of an EnvironmentFile=."""

import re
from collections.abc import Mapping, Sequence

from files.token.fetch_token import environment_line

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_@:,./+=-]+")
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


def command_line(words: Sequence[str]) -> str:
    """Return words as an ExecStart= line that systemd splits back into the same words.

    Unlike a shell's, the line expands `%` and `$` inside quotes too; both are doubled.
    """
    return " ".join(_word(word) for word in words)


def environment_file(values: Mapping[str, str], header: str) -> str:
    """Return the text of an EnvironmentFile= in sorted order; `header` becomes a comment."""
    lines = [environment_line(name, values[name]) for name in sorted(values)]
    return "\n".join([f"# {header}", *lines, ""])


def _word(word: str) -> str:
    if "\0" in word:
        raise ValueError(f"a NUL cannot be an argument: {word!r}")
    if _PLAIN_WORD.fullmatch(word):
        return word
    escaped = "".join(_ESCAPES.get(character, character) for character in word)
    return '"' + escaped.replace("%", "%%").replace("$", "$$") + '"'
