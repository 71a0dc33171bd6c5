"""How the look-out for spot interruptions is set up on a host."""

from collections.abc import Sequence
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundUnit(TypedDict):
    unit: dict[str, str]  # properties as `systemctl show` names them
    sha256: dict[str, str]  # by path; "" where a file cannot be read


class UnitFiles(FactBase[FoundUnit]):
    """A unit as systemd sees it, and the digests of the files that make it."""

    def command(self, unit: str, files: Sequence[str]) -> StringCommand:
        return program("unit_files.py", unit, *files)

    def process(self, output: list[str]) -> FoundUnit:
        found: FoundUnit = answer(output)
        return found
