"""Files with their content, directories, and what must not be there; modes and owners of all."""

import difflib
import hashlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from pyinfra import context
from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.paths import FoundPath, Paths
from operations.answers import ask
from operations.steps import Refusal, Step, carry_out


@dataclass(frozen=True)
class File:
    """A text file, whole: `content` ends in a newline; `mode` is octal digits, as in "644"."""

    path: str
    content: str
    mode: str = "644"
    user: str = "root"
    group: str = "root"

    def __post_init__(self) -> None:
        if not self.content.endswith("\n"):
            raise ValueError(f"{self.path}: the content of a managed file must end in a newline")


@dataclass(frozen=True)
class Directory:
    path: str
    mode: str = "755"
    user: str = "root"
    group: str = "root"


@dataclass(frozen=True)
class Absent:
    """Nothing may lie at `path`; a directory there goes with all that is in it.

    What is removed is not shown, not with --diff either: it may be a key that is asked for no more.
    """

    path: str


Entry = File | Directory | Absent


def plan(found: Mapping[str, FoundPath], entries: Sequence[Entry]) -> list[Step | Refusal]:
    """Return the steps that make each entry so, in the order given."""
    return [step for entry in entries for step in _steps(found[entry.path], entry)]


@operation()
def present(entries: Sequence[Entry]) -> Generator[PyinfraCommand, None, None]:
    """Make files, directories and absences so, in one round trip where they already are.

    A file is written beside its place under umask 077, given its mode and owner, then renamed: a
    reader sees the old file or the new one. Where only mode or owner differ, those alone change.
    """
    paths = [entry.path for entry in entries]
    files = [entry.path for entry in entries if isinstance(entry, File)]
    found = ask(Paths, paths=paths, shown=files if context.state.config.DIFF else [])
    yield from carry_out(plan(found, entries), settled=f"current: {', '.join(paths)}")


def _steps(found: FoundPath, entry: Entry) -> list[Step | Refusal]:
    if isinstance(entry, Absent):
        return [] if found["kind"] == "absent" else [_removal(found, entry)]
    if isinstance(entry, Directory):
        return _directory_steps(found, entry)
    return _file_steps(found, entry)


def _removal(found: FoundPath, entry: Absent) -> Step:
    return Step(
        f"{entry.path} must not exist, found a {found['kind']}",
        StringCommand("rm", "-rf", "--", QuoteString(entry.path)),
    )


def _directory_steps(found: FoundPath, entry: Directory) -> list[Step | Refusal]:
    create = StringCommand(
        *("install", "-d", "-m", entry.mode, "-o", QuoteString(entry.user)),
        *("-g", QuoteString(entry.group), "--", QuoteString(entry.path)),
    )
    if found["kind"] == "absent":
        return [Step(f"{entry.path} is missing", create)]
    if found["kind"] != "directory":
        return [_wrong_kind(found, entry, "directory")]
    return _ownership_steps(found, entry)


def _file_steps(found: FoundPath, entry: File) -> list[Step | Refusal]:
    if found["kind"] in ("directory", "other"):
        return [_wrong_kind(found, entry, "file")]
    wanted = hashlib.sha256(entry.content.encode()).hexdigest()
    if found.get("sha256") == wanted:
        return _ownership_steps(found, entry)
    reason = "is missing" if found["kind"] == "absent" else "differs in content"
    if found["kind"] == "link":
        reason = "is a link, wanted a file"
    diff = _diff(entry.path, found, entry.content)
    return [Step(f"{entry.path} {reason}", _write(entry), diff)]


def _write(entry: File) -> StringCommand:
    path = QuoteString(entry.path)
    return StringCommand(
        *("umask", "077", "&&", "new=$(mktemp --", QuoteString(f"{entry.path}.XXXXXX"), ")", "&&"),
        *("trap", """'rm -f -- "$new"'""", "EXIT", "&&"),
        *("cat", ">", '"$new"', "&&", "chmod", entry.mode, '"$new"', "&&"),
        *("chown", QuoteString(f"{entry.user}:{entry.group}"), '"$new"', "&&"),
        *("mv", "-fT", "--", '"$new"', path),
        _stdin=entry.content,
    )


def _ownership_steps(found: FoundPath, entry: File | Directory) -> list[Step | Refusal]:
    steps: list[Step | Refusal] = []
    owner = f"{entry.user}:{entry.group}"
    if (found["user"], found["group"]) != (entry.user, entry.group):
        steps.append(
            Step(
                f"{entry.path} belongs to {found['user']}:{found['group']}, wanted {owner}",
                StringCommand("chown", QuoteString(owner), "--", QuoteString(entry.path)),
            )
        )
    if found["mode"] != entry.mode:
        steps.append(
            Step(
                f"{entry.path} has mode {found['mode']}, wanted {entry.mode}",
                StringCommand("chmod", entry.mode, "--", QuoteString(entry.path)),
            )
        )
    return steps


def _wrong_kind(found: FoundPath, entry: File | Directory, wanted: str) -> Refusal:
    return Refusal(
        f"cannot manage {entry.path}: found a {found['kind']}, wanted a {wanted}. "
        "Nobody else should put one there: look at it, move it away, run again."
    )


def _diff(path: str, found: FoundPath, content: str) -> tuple[str, ...]:
    return tuple(
        difflib.unified_diff(
            found.get("content", "").splitlines(keepends=True),
            content.splitlines(keepends=True),
            fromfile=f"{path} (on the host)",
            tofile=f"{path} (wanted)",
        )
    )
