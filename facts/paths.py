"""What lies at a set of paths."""

from collections.abc import Collection
from typing import Literal, TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundPath(TypedDict, total=False):
    """One path as found; all but `kind` are missing where it is absent."""

    kind: Literal["file", "directory", "link", "other", "absent"]
    mode: str  # octal digits without a leading 0
    user: str
    group: str
    sha256: str  # of a file
    content: str  # of a text file, where asked for


class Paths(FactBase[dict[str, FoundPath]]):
    """What lies at each path; of those that are also `shown` the text, which a diff needs.

    Never have a secret shown: pyinfra prints fact output at -vvv.
    """

    default = dict

    def command(self, paths: Collection[str], shown: Collection[str] = ()) -> StringCommand:
        return program("paths.py", *shown, "--", *(path for path in paths if path not in shown))

    def process(self, output: list[str]) -> dict[str, FoundPath]:
        found: dict[str, FoundPath] = answer(output)
        return found
