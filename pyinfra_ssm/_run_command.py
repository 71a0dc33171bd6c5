"""The Run Command transport, for hosts on which no session can be had. Slow, but needs only sh.

Its output is cut at 24,000 characters and damaged where it is not UTF-8, so what a command wrote is
kept in a folder of the host until all of it is here, and comes as base64 of gzip, in pieces. The
text of each command stays in the account's history, and so does the content of a file that is
written: commands with secrets are refused, files cannot be told apart.
"""

import base64
import contextlib
import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, BinaryIO

from pyinfra_ssm import _leaving
from pyinfra_ssm._account import Account, Waiting
from pyinfra_ssm._deadline import Deadline
from pyinfra_ssm._errors import (
    HostTimeout,
    Interrupted,
    RemoteFileError,
    SecretRefused,
    ServiceError,
    SSMError,
)
from pyinfra_ssm._run_scripts import (
    PIECE,
    append_script,
    command_script,
    discard_script,
    fetch_script,
    finish_script,
    folder_script,
    inline_script,
    pack,
    read_script,
    tools_script,
    uploaded_script,
)
from pyinfra_ssm._transport import Ending, OnOutput, Request, Stream

_DOCUMENT = "AWS-RunShellScript"
_SHORTEST, _LONGEST = 5, 172_800  # seconds; beyond counts as 3600 without a word (recorded)
_MERCY = 60  # seconds beyond a command's own limit, for the script around it
# Of base64 in one SendCommand, whose parameters may have 64 KiB.
_UPLOAD_PIECE = 45_000
_FIRST_LOOK, _LAST_LOOK = 0.1, 2.0  # seconds between looks at an invocation
_MOST_LOOKS_FOR_NOTHING = 40  # over a minute
# What the agent appends to stderr (recorded).
_AGENTS_NOTE = re.compile(r"failed to run commands: .*\Z")
_OVER = {"Success", "Failed", "TimedOut", "Cancelled"}


@dataclass(frozen=True, slots=True)
class _Result:
    status: str
    stdout: str
    stderr: str


class RunCommandTransport:
    """A host through SendCommand and GetCommandInvocation."""

    def __init__(
        self, account: Account, target: str, waiting: Waiting, secrets_in_history: bool
    ) -> None:
        self._account, self._target = account, target
        self._waiting, self._secrets = waiting, secrets_in_history
        self._is_abandoned = False

    def open(self) -> None:
        """Check that commands arrive and that the host has what the scripts use."""
        _leaving.register(self)
        self._run_script(tools_script(), _MERCY)

    def close(self) -> None:
        """There is nothing to end: what was sent runs to its end."""
        _leaving.unregister(self)

    def abandon(self) -> None:
        """Let go of who waits, within the time between two looks."""
        self._is_abandoned = True

    def run(self, request: Request, on_output: OnOutput) -> Ending:
        if request.has_secret and not self._secrets:
            raise SecretRefused(
                "it holds a secret or reads standard input, and Run Command keeps both in the "
                "account's history. Use the session transport, or set ssm_secrets_in_history."
            )
        limit = request.timeout or _LONGEST - _MERCY
        script = self._prepare(request) + "\n" + command_script(request.timeout, request.terminal)
        folder, status, sizes, text = self._answer(self._run_script(script, limit + _MERCY))
        wanted = sum(sizes)
        if wanted > PIECE:
            with self._discarded_on_failure(folder):
                while len(text) < wanted:
                    text += self._run_script(fetch_script(folder, len(text)), _MERCY)
            self._discard(folder)
        for stream, part in zip(Stream, (text[: sizes[0]], text[sizes[0] : wanted]), strict=True):
            if data := _unpack(part):
                on_output(stream, data)
        timed_out = request.timeout is not None and status == "timeout"
        return Ending(None if timed_out else int(status), timed_out=timed_out)

    def put(
        self, path: str, source: BinaryIO, user: str | None, limit: float | None = None
    ) -> None:
        deadline = Deadline(limit)
        source.seek(0)
        content = source.read()
        folder = self._upload({"content": pack(content)}, deadline)
        digest = hashlib.sha256(content).hexdigest()
        longest = deadline.left(10 * _MERCY) or _MERCY
        with self._discarded_on_failure(folder):
            self._run_script(finish_script(folder, path, digest, user), longest)

    def get(self, path: str, sink: BinaryIO, user: str | None, limit: float | None = None) -> None:
        errors = bytearray()

        def take(stream: Stream, data: bytes) -> None:
            if stream is Stream.STDOUT:
                sink.write(data)
            else:
                errors.extend(data)

        ending = self.run(Request(read_script(path, user), timeout=limit), take)
        if ending.timed_out:
            raise HostTimeout(f"it was not over within {limit:g} s")
        if ending.code != 0:
            raise RemoteFileError(errors.decode(errors="replace").strip())

    def _prepare(self, request: Request) -> str:
        """Return the beginning of the script, uploading before what is too long for one."""
        files = {"script": request.command.encode("utf-8", "surrogateescape")}
        packed = {name: pack(text) for name, text in (files | {"stdin": request.stdin}).items()}
        if sum(map(len, packed.values())) <= _UPLOAD_PIECE:
            return inline_script(packed)
        return uploaded_script(self._upload(packed, Deadline()))

    def _upload(self, packed: Mapping[str, str], deadline: Deadline) -> str:
        """Write packed files to a new folder of the host, piece by piece; return its name."""
        folder = self._run_script(folder_script(), _MERCY).strip()
        with self._discarded_on_failure(folder):
            for name, text in packed.items():
                for at in range(0, len(text), _UPLOAD_PIECE):
                    deadline.left()
                    piece = text[at : at + _UPLOAD_PIECE]
                    self._run_script(append_script(folder, name, piece), _MERCY)
        return folder

    @contextlib.contextmanager
    def _discarded_on_failure(self, folder: str) -> Iterator[None]:
        try:
            yield
        except SSMError:
            self._discard(folder)
            raise

    def _discard(self, folder: str) -> None:
        with contextlib.suppress(SSMError):
            self._run_script(discard_script(folder), _MERCY)

    @staticmethod
    def _answer(text: str) -> tuple[str, str, list[int], str]:
        """Return folder, status, the two sizes, and the first piece of the output."""
        head, _, rest = text.partition("\n")
        try:
            folder, status, *sizes = head.split()
            out, err = map(int, sizes)
        except ValueError:
            raise SSMError(f"Run Command answered {text[:200]!r}") from None
        return folder, status, [out, err], rest

    def _run_script(self, script: str, limit: float) -> str:
        """Run a script of ours, which ends with 0; return what it printed."""
        if "\0" in script:
            raise SSMError("a NUL byte does not pass through Run Command")
        seconds = min(max(int(limit), _SHORTEST), _LONGEST)
        answer = self._account.call(
            "ssm",
            "send_command",
            repeatable=False,  # it might run twice
            InstanceIds=[self._target],
            DocumentName=_DOCUMENT,
            Parameters={"commands": [script], "executionTimeout": [str(seconds)]},
            Comment="pyinfra",
        )
        result = self._result(answer["Command"]["CommandId"])
        if result.status != "Success":
            raise RemoteFileError(_reason(result))
        return result.stdout

    def _result(self, command_id: str) -> _Result:
        """Return how an invocation ended; what is reported after that does not count."""
        delay = _FIRST_LOOK
        for look in count(1):
            if self._is_abandoned:
                raise Interrupted("interrupted")
            try:
                answer: dict[str, Any] = self._account.call(
                    "ssm",
                    "get_command_invocation",
                    CommandId=command_id,
                    InstanceId=self._target,
                )
                if answer["Status"] in _OVER:
                    return _Result(
                        answer.get("StatusDetails") or answer["Status"],
                        answer.get("StandardOutputContent", ""),
                        answer.get("StandardErrorContent", ""),
                    )
            except ServiceError as error:
                # It was sent a moment ago.
                if error.code != "InvocationDoesNotExist" or look == _MOST_LOOKS_FOR_NOTHING:
                    raise
            self._waiting.sleep(delay)
            delay = min(delay * 1.5, _LAST_LOOK)
        raise AssertionError("unreachable: it looks until there is an ending")


def _reason(result: _Result) -> str:
    """Return why a script of ours failed, as it says itself where it does."""
    said = _AGENTS_NOTE.sub("", result.stderr).strip() or result.stdout.strip()
    if said and result.status == "Failed":
        return said
    return f"Run Command ended as {result.status}: {said or 'no output'}"


def _unpack(text: str) -> bytes:
    try:
        return gzip.decompress(base64.b64decode(text)) if text else b""
    except (ValueError, OSError, EOFError) as error:
        raise SSMError("the output was damaged on its way through Run Command") from error
