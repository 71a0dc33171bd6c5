"""Our own programs below files/: sent with the command that runs them, or laid down on the host."""

from pyinfra.api import QuoteString, StringCommand

from facts.script import FILES

# Where those lie on the host that units call; a stage lays down its own before it calls them.
PROGRAMS = "/usr/local/lib/vllm-g5g"


def program(path: str, *arguments: str, stdin: str | None = None) -> StringCommand:
    """Return the command that runs files/`path` by the host's python3 and its standard library.

    Nothing is laid down first, so it works on a host where nothing of ours is yet.
    """
    source = QuoteString((FILES / path).read_text())
    words = ("python3", "-I", "-u", "-c", source, *map(QuoteString, arguments))
    return StringCommand(*words) if stdin is None else StringCommand(*words, _stdin=stdin)


def alone(command: StringCommand, path: str) -> StringCommand:
    """Return the command, held back until no other with the same path is at work on the host.

    What a killed run was at goes on there without it, and the next run must not get in between.
    The lock is on `path` itself, a file or directory that is there: nothing is left behind.
    """
    say = QuoteString(f"waiting for what an earlier run is still at (it holds {path})")
    return StringCommand(
        *("exec", "9<", QuoteString(path), "&&", "{", "flock", "-n", "9", "||"),
        *("{", "echo", say, ";", "flock", "9", ";", "}", ";", "}", "&&", command),
        **command.connector_arguments,
    )
