"""What on a host must not travel in an image of it."""

from typing import TypedDict

from pyinfra.api import FactBase, QuoteString, StringCommand

from facts.script import FILES, answer

SEAL = (FILES / "bake" / "seal.py").read_text()


class SealState(TypedDict):
    """Paths alone, never what is in them."""

    left: list[str]  # identity, secrets and histories
    tokens: list[str]  # files that hold what looks like a token


def seal_program(verb: str) -> StringCommand:
    """Return the command that runs files/bake/seal.py on the host."""
    return StringCommand("python3", "-I", "-c", QuoteString(SEAL), verb)


class Seal(FactBase[SealState]):
    """What would travel, and must not."""

    def command(self) -> StringCommand:
        return seal_program("state")

    def process(self, output: list[str]) -> SealState:
        state: SealState = answer(output)
        return state
