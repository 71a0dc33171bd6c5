"""Whether a tree's attention kernels were checked on this host, and with which Triton."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class FoundAttention(TypedDict):
    """`digest` names what the last check that passed looked at; None is absent in both."""

    digest: str | None
    triton: str | None


class Attention(FactBase[FoundAttention | None]):
    """The check on record and Triton's version in `python`; None where that interpreter is absent.

    Triton is not imported: its version is read from what is installed.
    """

    def command(self, record: str, python: str) -> StringCommand:
        return program("attention.py", record, interpreter=python)

    def process(self, output: list[str]) -> FoundAttention | None:
        found: FoundAttention | None = answer(output)
        return found
