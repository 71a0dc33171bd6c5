"""Secrets that are made or fetched on the host and never leave it: token and API key."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from desired.rendering import rendered
from desired.unit_syntax import command_line
from facts.secret import Secret, SecretFacts, SecretFile
from facts.units import FoundUnit, Units
from operations.answers import ask
from operations.filesystem import Absent, Entry, File
from operations.live import Live
from operations.programs import PROGRAMS, program
from operations.steps import Step, carry_out
from operations.unit_steps import differs, unit_steps

FILES = Path(__file__).resolve().parent.parent / "files"
TOKEN_UNIT = "vllm-token.service"
TOKEN_UNIT_PATH = f"/etc/systemd/system/{TOKEN_UNIT}"
TOKEN_SCRIPT = f"{PROGRAMS}/fetch_token.py"
# In a directory of root's alone, in memory: gone with a reboot, fetched again by the unit.
TOKEN_PATH = "/run/vllm-g5g/token.env"
TOKEN_VARIABLE = "HF_TOKEN"
KEY_VARIABLE = "VLLM_API_KEY"
PRIVATE = ("600", "root:root")


@dataclass(frozen=True)
class TokenSource:
    """The secret that holds the token, read with the instance's own role."""

    region: str
    secret_id: str  # name or ARN
    keep_last: bool = False  # go on with the last good token where a fetch fails

    @property
    def comment(self) -> str:
        """What the fetch script writes into the file about where it came from."""
        return f"secretsmanager {self.region} {self.secret_id}"


def token_entries(source: TokenSource | None) -> list[Entry]:
    """Return the files of the token's unit; without a source, their absence.

    The directory of the script belongs to an earlier operation.
    """
    if source is None:
        wants = f"/etc/systemd/system/multi-user.target.wants/{TOKEN_UNIT}"
        return [Absent(path) for path in (wants, TOKEN_UNIT_PATH, TOKEN_SCRIPT, TOKEN_PATH)]
    script = (FILES / "token" / "fetch_token.py").read_text()
    return [
        File(TOKEN_SCRIPT, script, mode="755"),
        File(TOKEN_UNIT_PATH, _unit_text(source)),
    ]


def _unit_text(source: TokenSource) -> str:
    return rendered("vllm-token.service.j2", command=command_line(_fetch_words(source)))


def _fetch_words(source: TokenSource) -> list[str]:
    keep = ["--keep-last"] if source.keep_last else []
    return [
        *("/usr/bin/python3", "-I", TOKEN_SCRIPT),
        *("--region", source.region, "--secret-id", source.secret_id),
        *("--variable", TOKEN_VARIABLE, "--output", TOKEN_PATH, *keep),
    ]


@operation()
def token_fetched(source: TokenSource) -> Generator[PyinfraCommand, None, None]:
    """Have the token on the host, from the wanted secret, and fetched again at every boot.

    A token that was replaced in Secrets Manager is fetched at the next boot, or by
    `systemctl restart vllm-token`: its value is never read here, so it cannot be compared.

    + source: region and name of the secret
    """
    found = ask(SecretFacts, path=TOKEN_PATH, variable=TOKEN_VARIABLE, unit_file=TOKEN_UNIT_PATH)
    steps = token_plan(found, source)
    yield from carry_out(steps, settled=f"the token of {source.secret_id} is on the host")


def token_plan(found: Secret, source: TokenSource) -> list[Step]:
    """Return the steps that fetch the token, where what is there is not what is wanted."""
    unread = differs(found["unit_sha256"], _unit_text(source))
    steps = unit_steps(TOKEN_UNIT, found["unit"], unread)
    reasons = _token_reasons(found, source)
    return [*steps, Step("; ".join(reasons), _fetch())] if reasons else steps


def _token_reasons(found: Secret, source: TokenSource) -> list[str]:
    file, unit = found["file"], found["unit"]
    reasons = _content_reasons(TOKEN_PATH, file)
    if file["present"] and (file["mode"], file["owner"]) != PRIVATE:
        reasons.append(f"{TOKEN_PATH} is {file['mode']} {file['owner']}, wanted 600 root:root")
    if file["present"] and source.comment not in file["comments"]:
        reasons.append(f"{TOKEN_PATH} is not from {source.secret_id} in {source.region}")
    if unit.get("ActiveState") != "active":
        reasons.append(f"{TOKEN_UNIT} is {unit.get('ActiveState', 'not known')}")
    return reasons


def _content_reasons(path: str, file: SecretFile) -> list[str]:
    if not file["present"]:
        return [f"{path} is missing"]
    return [] if file["good"] else [f"{path} does not hold one printable word"]


def _fetch() -> Live:
    invocation = f"$(systemctl show --property InvocationID --value {TOKEN_UNIT})"
    shown = StringCommand(
        *("journalctl", "--no-pager", "--output", "cat", "--lines", "20"),
        *(f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}"),
    )
    return Live(
        StringCommand("systemctl", "restart", TOKEN_UNIT),
        evidence=lambda output: shown,
        explain=token_failure,
    )


def token_failure(lines: Sequence[str]) -> list[str]:
    """Return what the user reads: the script's own verdict, which names the remedy, first."""
    verdicts = [line for line in lines if line.startswith("no token: ")]
    return [*verdicts, "--- journal ---", *lines]


@operation()
def token_unit_gone() -> Generator[PyinfraCommand, None, None]:
    """Have systemd forget the token's unit, whose files `token_entries(None)` takes away before.

    A oneshot unit that remains after its exit stays active for good, with or without a file.
    """
    found = ask(Units, units=[TOKEN_UNIT])
    yield from carry_out(gone_plan(found[TOKEN_UNIT]), settled=f"{TOKEN_UNIT} is not there")


def gone_plan(found: FoundUnit) -> list[Step]:
    """Return the step after which systemd has nothing of the token's unit in its memory."""
    active = found["state"].get("ActiveState", "inactive")
    if active == "inactive":
        return []
    forget = StringCommand(
        *("systemctl", "stop", TOKEN_UNIT, "&&"),
        # A fetch that is cut short counts as failed, and a failed unit is remembered too.
        *("if", "systemctl", "is-failed", "--quiet", TOKEN_UNIT, ";"),
        *("then", "systemctl", "reset-failed", TOKEN_UNIT, ";", "fi", "&&"),
        *("systemctl", "daemon-reload"),
    )
    return [Step(f"{TOKEN_UNIT} is {active}, and no token is wanted", forget)]


@operation()
def api_key(path: str, generation: int) -> Generator[PyinfraCommand, None, None]:
    """Have an API key that was made on the host, readable by root alone.

    + path: the environment file that holds it
    + generation: raise it to have another key made
    """
    found = ask(SecretFacts, path=path, variable=KEY_VARIABLE)
    steps = key_plan(found["file"], path, generation)
    yield from carry_out(steps, settled=f"{path} holds a key of generation {generation}")


def key_plan(found: SecretFile, path: str, generation: int) -> list[Step]:
    """Return the steps that make a key, or that make the one that is there private again."""
    reasons = _content_reasons(path, found)
    if not reasons and f"generation {generation}" not in found["comments"]:
        reasons = [f"{path} is not of generation {generation}"]
    if reasons:
        return [Step("; ".join(reasons), program("actions/make_api_key.py", path, str(generation)))]
    if (found["mode"], found["owner"]) == PRIVATE:
        return []
    reason = f"{path} is {found['mode']} {found['owner']}, wanted 600 root:root"
    quoted = QuoteString(path)
    command = StringCommand("chown", "root:root", quoted, "&&", "chmod", "600", quoted)
    return [Step(reason, command)]
