"""Long work in a systemd unit of its own, which outlives the connection that started it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand

from failures.diagnosis import Failure, explain
from operations.live import Live
from operations.programs import program

# Of the log, when a failure is looked for: a compiler's first error can be far above the end.
EVIDENCE_LINES = 2000


@dataclass(frozen=True)
class Job:
    """A program of ours and its unit; `work` is a directory of the job's own on the host."""

    unit: str
    description: str
    python: str
    program: Path
    work: str
    log: str
    failures: Sequence[Failure]  # the known ones, by which a failure is explained
    beside: Sequence[Path] = ()  # files that the program finds beside itself, modules above all
    properties: Mapping[str, str] = field(default_factory=dict)

    def command(self, given: object) -> Live:
        """Return the command that starts the job on `given`, a JSON value, or attaches to it."""
        text = json.dumps(
            {
                "unit": self.unit,
                "description": self.description,
                "python": self.python,
                "program": self.program.name,
                "files": {path.name: path.read_text() for path in (self.program, *self.beside)},
                "work": self.work,
                "log": self.log,
                "properties": dict(self.properties),
                "input": given,
            }
        )
        shown = StringCommand("tail", "-n", str(EVIDENCE_LINES), "--", QuoteString(self.log))
        return Live(
            program("jobs/job.py", stdin=text),
            evidence=lambda output: shown,
            explain=lambda lines: explain(lines, self.failures),
        )
