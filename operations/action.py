"""Programs of files/actions/ that act on the host: one Python file each, run where it is needed.

They are sent with the command, so that they work before anything was installed.
"""

from pathlib import Path

from pyinfra.api import QuoteString, StringCommand

PROGRAMS = Path(__file__).resolve().parent.parent / "files" / "actions"


def action(file_name: str, *arguments: str) -> StringCommand:
    """Return the command that runs files/actions/`file_name` on the host."""
    source = (PROGRAMS / file_name).read_text()
    return StringCommand("python3", "-I", "-c", QuoteString(source), *map(QuoteString, arguments))
