"""The patched vLLM source tree."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundTree(TypedDict):
    """Commit ids are full hex; a name that does not resolve is the empty string."""

    repository: str
    tag_commit: str
    head: str
    parent: str
    recorded_head: str  # the commit that our last preparation ended in
    inputs: str  # digest of what HEAD was made from, out of its message
    changes: list[str]  # lines of `git status --porcelain`, at most ten
    change_count: int


class SourceTree(FactBase[FoundTree | None]):
    """The tree as git sees it; None where there is no repository, or no git yet."""

    def command(self, tree: str, tag: str) -> StringCommand:
        return program("source.py", tree, tag)

    def process(self, output: list[str]) -> FoundTree | None:
        found: FoundTree | None = answer(output)
        return found
