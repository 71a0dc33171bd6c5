"""Facts that are one small Python program: sent, run on the host, answered in JSON.

The programs lie in files/facts/, but for one that is a module of the measuring programs too. They
use the standard library alone and write nothing. Every supported host image has a python3;
preflight says so where one has not.
"""

import json
from pathlib import Path
from typing import Any

from pyinfra.api import QuoteString, StringCommand
from pyinfra.api.exceptions import FactProcessError

FILES = Path(__file__).resolve().parent.parent / "files"


def program(
    file_name: str, *arguments: str, interpreter: str = "python3", folder: str = "facts"
) -> StringCommand:
    """Return the command that runs files/`folder`/`file_name` on the host.

    Where the interpreter is given by its path and there is none, the answer is null.
    """
    source = QuoteString((FILES / folder / file_name).read_text())
    words = (source, *map(QuoteString, map(str, arguments)))
    if interpreter == "python3":
        # A program that takes nothing from site-packages starts a third faster without them.
        return StringCommand("python3", "-I", "-S", "-c", *words)
    run = StringCommand(QuoteString(interpreter), "-I", "-c", *words)
    absent = StringCommand("[", "!", "-x", QuoteString(interpreter), "]")
    return StringCommand("if", absent, "; then", "echo null", "; else", run, "; fi")


def answer(output: list[str]) -> Any:
    """Return the JSON value that a program printed; FactProcessError names what came instead."""
    text = "\n".join(output)
    try:
        return json.loads(text)
    except ValueError as error:
        raise FactProcessError(f"expected JSON from the host, got {text[:200]!r}") from error
