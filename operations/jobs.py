"""Long work in a systemd unit of its own, which outlives the connection that started it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from facts.script import FILES
from operations.steps import LiveCommand, python_program


@dataclass(frozen=True)
class Job:
    """A program of ours and its unit; `work` is a directory of the job's own on the host."""

    unit: str
    description: str
    python: str
    program: Path
    work: str
    log: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def command(self, given: object) -> LiveCommand:
        """Return the command that starts the job on `given`, a JSON value, or attaches to it."""
        text = json.dumps(
            {
                "unit": self.unit,
                "description": self.description,
                "python": self.python,
                "program": self.program.read_text(),
                "work": self.work,
                "log": self.log,
                "properties": dict(self.properties),
                "input": given,
            }
        )
        return LiveCommand(python_program(FILES / "jobs" / "job.py", stdin=text))
