"""From a command line to what is executed; pure."""

import shlex

_SHELLS = {"sh", "bash", "/bin/sh", "/bin/bash"}


def shell_arguments(command: str) -> list[str]:
    """Return the arguments to execute for a command line, with one shell rather than two.

    pyinfra wraps what it runs as `sh -c '...'`. Where that is the whole of it, quoted as
    shlex.quote does, the outer shell would only start the inner one.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    plain = len(words) == 3 and words[0] in _SHELLS and words[1] == "-c"
    if plain and shlex.join(words) == command:
        return words
    return ["sh", "-c", command]
