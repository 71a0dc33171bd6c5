"""What systemd knows of some units."""

from collections.abc import Collection
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundUnit(TypedDict, total=False):
    """Properties as `systemctl show` names them; `file`: whether ours lies in /etc."""

    LoadState: str
    ActiveState: str
    UnitFileState: str
    file: bool


class Units(FactBase[dict[str, FoundUnit]]):
    """The state of each unit; one that systemd does not know has LoadState not-found."""

    default = dict

    def command(self, units: Collection[str]) -> StringCommand:
        return program("units.py", *units)

    def process(self, output: list[str]) -> dict[str, FoundUnit]:
        found: dict[str, FoundUnit] = answer(output)
        return found
