"""What systemd knows of some units."""

from collections.abc import Collection
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundUnit(TypedDict):
    """`state`: properties as `systemctl show` names them; `sha256`: of the file in /etc, or ""."""

    state: dict[str, str]
    sha256: str


class Units(FactBase[dict[str, FoundUnit]]):
    """Each unit by name; one that systemd does not know has LoadState=not-found."""

    def command(self, units: Collection[str]) -> StringCommand:
        return program("units.py", *units)

    def process(self, output: list[str]) -> dict[str, FoundUnit]:
        found: dict[str, FoundUnit] = answer(output)
        return found
