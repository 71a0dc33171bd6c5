"""From a command line to what is executed; pure."""

import re
import shlex

_WRAPPED = re.compile(r"(sh|bash|/bin/sh|/bin/bash) -c (.*)", re.DOTALL)


def shell_arguments(command: str) -> list[str]:
    """Return the arguments to execute for a command line, with one shell rather than two.

    pyinfra wraps what it runs as `sh -c '...'`. Where that is the whole of it, quoted as
    shlex.quote does, the outer shell would only start the inner one.
    """
    wrapped = _WRAPPED.fullmatch(command)
    script = _unquote(wrapped[2]) if wrapped else None
    if wrapped and script is not None:
        return [wrapped[1], "-c", script]
    return ["sh", "-c", command]


def _unquote(word: str) -> str | None:
    """Return what shlex.quote makes `word` of; None if there is no such text.

    Not by shlex.split, whose time grows with the square of the length.
    """
    texts = (word, word[1:-1].replace("'\"'\"'", "'"))
    return next((text for text in texts if shlex.quote(text) == word), None)
