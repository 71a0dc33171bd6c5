"""Session documents: what StartSession's DocumentName and Parameters make the agent do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class SessionType(StrEnum):
    SHELL = "Standard_Stream"
    INTERACTIVE = "InteractiveCommands"
    NON_INTERACTIVE = "NonInteractiveCommands"
    PORT = "Port"


@dataclass(frozen=True)
class SessionDocument:
    """One document. `{{name}}` in `command` and `port` stands for a parameter.

    `defaults` has every parameter that there is; None where the caller must give a value.
    """

    session_type: SessionType
    command: str = ""
    elevated: bool = False
    separate_output: str = "False"
    port: str = ""
    defaults: Mapping[str, str | None] = field(default_factory=dict)

    def fill(self, parameters: Mapping[str, Sequence[str]]) -> "SessionDocument":
        """Return the document with its parameters in place; ValueError for a wrong one."""
        unknown = parameters.keys() - self.defaults.keys()
        if unknown:
            raise ValueError(f"no such parameter: {', '.join(sorted(unknown))}")
        values = {**self.defaults, **{name: listed[0] for name, listed in parameters.items()}}
        missing = [name for name, value in values.items() if value is None]
        if missing:
            raise ValueError(f"parameter not given: {', '.join(missing)}")
        return replace(
            self,
            command=_substitute(self.command, values),
            separate_output=_substitute(self.separate_output, values),
            port=_substitute(self.port, values),
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "SessionDocument":
        """Read a schema 1.0 document, as the console shows it; Linux properties only."""
        properties = document.get("properties", {})
        linux = properties.get("linux", properties)
        return cls(
            SessionType(document["sessionType"]),
            command=linux.get("commands", ""),
            elevated=bool(linux.get("runAsElevated", False)),
            separate_output=str(linux.get("separateOutputStream", "False")),
            port=str(linux.get("portNumber", "")),
            defaults={
                name: each.get("default") for name, each in document.get("parameters", {}).items()
            },
        )


def _substitute(text: str, values: Mapping[str, str | None]) -> str:
    for name, value in values.items():
        for form in (f"{{{{{name}}}}}", f"{{{{ {name} }}}}"):
            text = text.replace(form, value or "")
    return text


SHELL_DOCUMENT = "SSM-SessionManagerRunShell"
DOCUMENTS: Mapping[str, SessionDocument] = {
    SHELL_DOCUMENT: SessionDocument(SessionType.SHELL),
    "AWS-StartInteractiveCommand": SessionDocument(
        SessionType.INTERACTIVE, "{{command}}", defaults={"command": None}
    ),
    "AWS-StartNonInteractiveCommand": SessionDocument(
        SessionType.NON_INTERACTIVE,
        "{{command}}",
        separate_output="{{separateOutputStream}}",
        defaults={
            "command": None,
            "separateOutputStream": "False",
            "stdoutSeparatorPrefix": "",
            "stderrSeparatorPrefix": "",
        },
    ),
    "AWS-StartSSHSession": SessionDocument(
        SessionType.PORT, port="{{portNumber}}", defaults={"portNumber": "22"}
    ),
}
