"""The vLLM that was built from source: its stamp, and whether what is installed is still that."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class Inputs(TypedDict):
    """What went in, by name: what is compiled, and what is only Python."""

    compiled: dict[str, str]
    python: dict[str, str]


class Outputs(TypedDict):
    version: str
    commit: str  # of the tree
    wheel_sha256: str
    checked: dict[str, object]  # what files/build/check_build.py found
    seconds: float


class Stamp(TypedDict):
    """What a build was made from and what came out; written last, so it tells of a whole build."""

    inputs: Inputs
    outputs: Outputs


class FoundBuild(TypedDict):
    stamp: Stamp | None
    running: bool  # whether the build's unit is at work
    installed: str  # version of the installed distribution; "" where there is none
    damaged: list[str]  # installed files that differ from what was installed, at most five
    damaged_count: int
    torch: str
    python: str
    cores: int
    memory_bytes: int


class VllmBuild(FactBase[FoundBuild | None]):
    """State of the build; None where the interpreter is absent."""

    def command(self, python: str, stamp: str, unit: str) -> StringCommand:
        return program("build.py", stamp, unit, interpreter=python)

    def process(self, output: list[str]) -> FoundBuild | None:
        found: FoundBuild | None = answer(output)
        return found
