"""Facts asked for in advance: what the last prepare phase of a deploy ran on a host, all at once.

pyinfra asks its facts one after another, so a check of a converged host is nothing but round trips.
Remembered are command lines, never output, and none that holds a secret.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from pyinfra_ssm._errors import SSMError
from pyinfra_ssm._transport import Ending, OnOutput, Request, Stream

# A deploy that asks for more than this has a problem that prefetching does not solve.
_MOST_COMMANDS = 300
_LARGEST_FILE = 1 << 20
_VERSION = 1


class Begun(Protocol):
    """A command that was sent and is not waited for."""

    def finish(self, on_output: OnOutput) -> Ending:
        """Wait for its end."""

    def drop(self) -> None:
        """Forget what it says."""


class Memory:
    """The commands of one deploy on one host, in a file that only this user can read."""

    def __init__(self, folder: Path, host: str, deploy: Sequence[str]) -> None:
        key = json.dumps([host, *deploy]).encode()
        self._path = folder / f"{hashlib.sha256(key).hexdigest()[:32]}.json"

    def load(self) -> list[Request]:
        """Return what was saved; nothing if there is no file, or none that we wrote.

        What it holds is run as root: a file that others can write to counts as none.
        """
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                others = found.st_uid != os.geteuid() or found.st_mode & 0o022
                if others or found.st_size > _LARGEST_FILE:
                    return []
                saved = json.load(file)
            if saved["version"] != _VERSION:
                return []
            return [_request(each) for each in saved["commands"]]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return []

    def save(self, requests: Sequence[Request]) -> None:
        """Replace what was saved. That a cache cannot be written is no failure of a deploy."""
        commands = [
            {"command": each.command, "timeout": each.timeout, "terminal": each.terminal}
            for each in requests
        ]
        text = json.dumps({"version": _VERSION, "commands": commands})
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._path.with_suffix(f".{os.getpid()}")
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(fd, "w", encoding="utf-8") as file:
                file.write(text)
            temporary.replace(self._path)


def _request(saved: dict[str, object]) -> Request:
    command, timeout, terminal = (saved[key] for key in ("command", "timeout", "terminal"))
    if not isinstance(command, str) or not isinstance(terminal, bool):
        raise TypeError("not what save() writes")
    if timeout is not None and not isinstance(timeout, int | float):
        raise TypeError("not what save() writes")
    return Request(command, timeout=timeout, terminal=terminal)


def default_folder() -> Path | None:
    """Return where memories are kept; None where this user has no place for them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
        cache = cache.expanduser()
    except RuntimeError:  # neither HOME nor an account of this machine
        return None
    return cache / "pyinfra-ssm" if cache.is_absolute() else None


class Foresight:
    """Answers the facts of one prepare phase, until something is asked that was not foreseen."""

    def __init__(self, memory: Memory) -> None:
        self.answered = 0
        self.asked: dict[Request, None] = {}  # in order; what to remember
        self._memory = memory
        self._remembered = memory.load()
        self._begun: dict[Request, Begun] = {}
        self._known: dict[Request, tuple[Ending, list[tuple[Stream, bytes]]]] = {}
        self._is_recording = True

    @property
    def foreseen(self) -> int:
        return len(self._remembered)

    def begin(self, begin: Callable[[Request], Begun]) -> None:
        """Send all that is remembered; `begin` starts one command and does not wait for it."""
        self._begun = {request: begin(request) for request in self._remembered}

    def answer(self, request: Request, on_output: OnOutput) -> Ending | None:
        """Return how a fact's command ended, as foreseen; None if it has to be run."""
        if not self._is_recording or request.has_secret or request.stdin:
            self.end()
            return None
        if len(self.asked) < _MOST_COMMANDS:
            self.asked[request] = None
        if request not in self._known and not self._finish(request):
            self._forget()
            return None
        ending, output = self._known[request]
        for stream, data in output:
            on_output(stream, data)
        self.answered += 1
        return ending

    def end(self) -> None:
        """Stop for good: something was done that may change what facts say."""
        if not self._is_recording:
            return
        self._is_recording = False
        self._forget()
        if self.asked and list(self.asked) != self._remembered:
            self._memory.save(list(self.asked))

    def _finish(self, request: Request) -> bool:
        begun = self._begun.pop(request, None)
        if begun is None:
            return False
        output: list[tuple[Stream, bytes]] = []
        try:
            ending = begun.finish(lambda stream, data: output.append((stream, data)))
        except SSMError:
            return False  # a fact may be asked again, on a new session
        self._known[request] = ending, output
        return True

    def _forget(self) -> None:
        for begun in self._begun.values():
            begun.drop()
        self._begun.clear()
        self._known.clear()
