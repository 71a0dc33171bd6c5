"""How a secret's file is kept on the host; what is in it stays there."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class SecretFile(TypedDict, total=False):
    """The file as found; all but `present` are missing where it is absent."""

    present: bool
    good: bool  # a regular file that sets the variable, and nothing else, to one printable word
    mode: str  # octal digits, as "600"
    owner: str  # as "root:root"
    comments: list[str]


class Secret(TypedDict):
    file: SecretFile
    unit: dict[str, str]  # properties of the unit that writes it; empty where none does
    unit_sha256: str  # of the unit's file on disk


class SecretFacts(FactBase[Secret]):
    """State of an environment file with one secret, and of the unit that writes it."""

    def command(self, path: str, variable: str, unit_file: str | None = None) -> StringCommand:
        units = [unit_file] if unit_file else []
        return program("private_file.py", path, variable, *units)

    def process(self, output: list[str]) -> Secret:
        found: Secret = answer(output)
        return found
