"""The checkpoint that is served."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundCheckpoint(TypedDict):
    identity: str  # what it was made from
    faults: list[str]  # files missing or damaged, at most five
    fault_count: int


class Checkpoint(FactBase[FoundCheckpoint | None]):
    """The checkpoint in `directory` against its manifest; None where it was never completed."""

    def command(self, directory: str) -> StringCommand:
        return program("model.py", directory)

    def process(self, output: list[str]) -> FoundCheckpoint | None:
        found: FoundCheckpoint | None = answer(output)
        return found
