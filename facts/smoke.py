"""What the last smoke check of a host found, and what it would test now."""

from collections.abc import Collection
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class SmokeRecord(TypedDict):
    """The last check: `digest` names what it tested, `at` is UTC in ISO 8601."""

    digest: str
    passed: bool
    complaints: list[str]
    at: str


class SmokeState(TypedDict):
    """`files`: path -> SHA-256, None where absent."""

    record: SmokeRecord | None
    files: dict[str, str | None]


class Smoke(FactBase[SmokeState]):
    """The record of the last check and the digests of the files that decide on a new one."""

    def command(self, record: str, files: Collection[str]) -> StringCommand:
        return program("smoke.py", record, *files)

    def process(self, output: list[str]) -> SmokeState:
        state: SmokeState = answer(output)
        return state
