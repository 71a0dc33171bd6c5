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
    """What lies at each path; `content` also fetches the text, which a diff needs.

    Never ask for the content of a secret: pyinfra prints fact output at -vvv.
    """

    default = dict

    def command(self, paths: Collection[str], content: bool = False) -> StringCommand:
        return program("paths.py", "content" if content else "digest", *paths)

    def process(self, output: list[str]) -> dict[str, FoundPath]:
        found: dict[str, FoundPath] = answer(output)
        return found
