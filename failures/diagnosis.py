"""Tell from a log why something failed, and what to do about it.

Pure functions over lines that were fetched from a host; failures/known.py has the table.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN_LINES = 40


@dataclass(frozen=True)
class Failure:
    """One known failure. `evidence`: measured, source, field, or the public report."""

    name: str
    pattern: str  # a regular expression, searched in each line, whatever its case
    cause: str
    remedy: str
    evidence: str


@dataclass(frozen=True)
class Diagnosis:
    failure: Failure
    line: str  # the first that matched


def diagnose(lines: Iterable[str], table: Sequence[Failure]) -> list[Diagnosis]:
    """Return the known failures found in log lines, in the order of the table."""
    kept = list(lines)
    found = []
    for failure in table:
        pattern = re.compile(failure.pattern, re.IGNORECASE)
        line = next((line for line in kept if pattern.search(line)), None)
        if line is not None:
            found.append(Diagnosis(failure, line.strip()))
    return found


def explain(lines: Sequence[str], table: Sequence[Failure]) -> list[str]:
    """Return what the user reads: cause and remedy of each known failure, then the log's end."""
    told = []
    for known in diagnose(lines, table):
        told += [
            f"cause: {known.failure.cause} [{known.failure.evidence}]",
            f"remedy: {known.failure.remedy}",
            f"seen: {known.line[:300]}",
        ]
    if not told:
        told = ["cause: none of the known failures; the log follows, its last lines first to read"]
    end = list(lines[-SHOWN_LINES:])
    return [*told, f"--- last {len(end)} lines ---", *end]
