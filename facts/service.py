"""How the service is: its unit, what it was started from, and whether it answers."""

from collections.abc import Sequence
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class Process(TypedDict):
    """The running main process; both are empty where none runs."""

    argv: list[str]
    environment: dict[str, str]  # of the variables that were asked for


class Record(TypedDict):
    """What one file was when the process started."""

    version: str  # inode, time and size: equal exactly while nobody wrote or replaced the file
    sha256: str  # of its essence, without comments; "" where the service's user may not read it


class Answer(TypedDict):
    status: int  # of HTTP; 0 where there was no answer
    text: str
    error: str


class Service(TypedDict):
    unit: dict[str, str]  # properties as `systemctl show` names them
    unit_sha256: str  # of the unit's file on disk, read by systemd or not; "" where there is none
    drop_ins: dict[str, str]  # text by path, whoever put them there
    process: Process
    record: dict[str, Record] | None  # by path; None: not started by our unit
    versions: dict[str, str]  # by path, of the watched files as they are now
    key_generation: int | None  # of the API key's file; None without a good one
    age: float  # seconds since the unit became active
    answer: Answer | None  # to one chat completion; None where the unit is not active


class ServiceFacts(FactBase[Service]):
    """Everything that decides on a restart, in one round trip; no secret's value is in it.

    It asks the server one short question: an active unit may well be a dead server.
    """

    def command(
        self,
        unit: str,
        unit_file: str,
        url: str,
        model: str,
        question: str,
        api_key_file: str | None,
        watch: Sequence[str],
        variables: Sequence[str],
    ) -> StringCommand:
        asked = ["--unit", unit, "--unit-file", unit_file]
        asked += ["--url", url, "--model", model, "--question", question]
        key = ["--api-key-file", api_key_file] if api_key_file else []
        # Eight tokens take a T4G 0.2 s [field report], and show a loop of one or two of them.
        words = [*asked, "--max-tokens", "8", *key, "--watch", *watch]
        words += ["--variables", *variables]
        return program("service_state.py", *words, folder="bench")

    def process(self, output: list[str]) -> Service:
        found: Service = answer(output)
        return found
