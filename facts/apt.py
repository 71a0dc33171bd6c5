"""What dpkg has installed, and what it left half done."""

from collections.abc import Collection
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class PackageState(TypedDict):
    """The answer of files/facts/packages.py."""

    installed: dict[str, str]  # name -> version, of those asked for
    unfinished: list[str]  # unpacked, half-configured, triggers pending, ...
    damaged: list[str]  # dpkg wants these unpacked again ("reinst-required")
    journals: list[str]  # what a killed dpkg left in /var/lib/dpkg/updates
    unmet: list[str]  # installed, but without what they depend on


class Packages(FactBase[PackageState]):
    """Which of the named packages are installed, and whether dpkg was interrupted."""

    def command(self, names: Collection[str]) -> StringCommand:
        return program("packages.py", *sorted(names))

    def process(self, output: list[str]) -> PackageState:
        state: PackageState = answer(output)
        return state
