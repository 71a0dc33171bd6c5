"""How far the benchmark runs on a host are."""

from collections.abc import Collection
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundRun(TypedDict):
    """One run: `whole` once every cell was measured; `cells` counts those that were kept."""

    id: str | None
    whole: bool
    cells: int


class BenchState(TypedDict):
    """`files`: path -> SHA-256, None where absent; `runs` by the name of their directory."""

    files: dict[str, str | None]
    runs: dict[str, FoundRun]


class Bench(FactBase[BenchState]):
    """The runs below a directory, and the digests of the files that decide on a new one."""

    def command(self, runs: str, files: Collection[str]) -> StringCommand:
        return program("bench.py", runs, *files)

    def process(self, output: list[str]) -> BenchState:
        state: BenchState = answer(output)
        return state
