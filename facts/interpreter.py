"""The serving interpreter: what is installed, and how requirement markers are judged there."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundInterpreter(TypedDict):
    environment: dict[str, str]  # PEP 508 marker variables
    installed: dict[str, str]  # canonical distribution name -> version


class Interpreter(FactBase[FoundInterpreter | None]):
    """Distributions of the interpreter at `python`; None where it is absent."""

    def command(self, python: str) -> StringCommand:
        return program("interpreter.py", interpreter=python)

    def process(self, output: list[str]) -> FoundInterpreter | None:
        found: FoundInterpreter | None = answer(output)
        return found
