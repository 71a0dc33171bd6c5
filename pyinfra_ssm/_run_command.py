"""The Run Command transport, for hosts on which no session can be had. Slow, but needs only sh.

Its output is cut at 24,000 characters and damaged where it is not UTF-8, so what a command wrote is
kept in a folder of the host until all of it is here, and comes as base64 of gzip, in pieces. The
text of each command stays in the account's history, and so does the content of a file that is
written: commands with secrets are refused, files cannot be told apart.
"""

import base64
import gzip
import hashlib
import shlex
from dataclasses import dataclass
from typing import Any, BinaryIO

from pyinfra_ssm._account import Account, Waiting
from pyinfra_ssm._errors import RemoteFileError, SecretRefused, ServiceError, SSMError
from pyinfra_ssm._run_scripts import (
    PIECE,
    append_script,
    command_script,
    discard_script,
    fetch_script,
    finish_script,
    folder_script,
)
from pyinfra_ssm._transport import Ending, OnOutput, Request, Stream

_DOCUMENT = "AWS-RunShellScript"
_LONGEST = 172_800  # seconds; what is out of range counts as 3600 without a word (recorded)
_MERCY = 60  # seconds beyond a command's own limit, for the script around it
# Of base64 in one SendCommand, whose parameters may have 64 KiB.
_UPLOAD_PIECE = 45_000
_FIRST_LOOK, _LAST_LOOK = 0.1, 2.0  # seconds between looks at an invocation
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

    def open(self) -> None:
        """Check that commands arrive and that the host has what the scripts use."""
        self._run_script("command -v base64 gzip mktemp sha256sum >/dev/null", 30)

    def close(self) -> None:
        """There is nothing to close."""

    def run(self, request: Request, on_output: OnOutput) -> Ending:
        if request.has_secret and not self._secrets:
            raise SecretRefused(
                "it holds a secret or reads standard input, and Run Command keeps both in the "
                "account's history. Use the session transport, or set ssm_secrets_in_history."
            )
        limit = request.timeout or _LONGEST - _MERCY
        script = command_script(request.command, request.stdin, request.timeout, request.terminal)
        folder, status, sizes, text = self._answer(self._run_script(script, limit + _MERCY))
        wanted = sum(sizes)
        while len(text) < wanted:
            text += self._run_script(fetch_script(folder, len(text)), _MERCY)
        if wanted > PIECE:
            self._run_script(discard_script(folder), _MERCY)
        for stream, part in zip(Stream, (text[: sizes[0]], text[sizes[0] : wanted]), strict=True):
            if data := _unpack(part):
                on_output(stream, data)
        timed_out = request.timeout is not None and status == "timeout"
        return Ending(None if timed_out else int(status), timed_out=timed_out)

    def put(self, path: str, source: BinaryIO, user: str | None) -> None:
        source.seek(0)
        content = source.read()
        packed = base64.b64encode(gzip.compress(content, mtime=0)).decode()
        folder = self._run_script(folder_script(), _MERCY).strip()
        for at in range(0, len(packed), _UPLOAD_PIECE):
            piece = packed[at : at + _UPLOAD_PIECE]
            self._run_script(append_script(folder, piece), _MERCY)
        digest = hashlib.sha256(content).hexdigest()
        self._run_script(finish_script(folder, path, digest, user), 10 * _MERCY)

    def get(self, path: str, sink: BinaryIO, user: str | None) -> None:
        command = f"cat -- {shlex.quote(path)}"
        if user:
            command = f"su -s /bin/sh {shlex.quote(user)} -c {shlex.quote(command)}"
        errors = bytearray()

        def take(stream: Stream, data: bytes) -> None:
            if stream is Stream.STDOUT:
                sink.write(data)
            else:
                errors.extend(data)

        if self.run(Request(command), take).code != 0:
            raise RemoteFileError(errors.decode(errors="replace").strip())

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
        answer = self._account.call(
            "ssm",
            "send_command",
            repeatable=False,  # it might run twice
            InstanceIds=[self._target],
            DocumentName=_DOCUMENT,
            Parameters={"commands": [script], "executionTimeout": [str(min(int(limit), _LONGEST))]},
            Comment="pyinfra",
        )
        result = self._result(answer["Command"]["CommandId"])
        if result.status != "Success":
            said = result.stderr.strip() or result.stdout.strip() or "no output"
            raise RemoteFileError(f"Run Command ended as {result.status}: {said}")
        return result.stdout

    def _result(self, command_id: str) -> _Result:
        """Return how an invocation ended; what is reported after that does not count."""
        delay = _FIRST_LOOK
        while True:
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
                if error.code != "InvocationDoesNotExist":  # it was sent a moment ago
                    raise
            self._waiting.sleep(delay)
            delay = min(delay * 1.5, _LAST_LOOK)


def _unpack(text: str) -> bytes:
    try:
        return gzip.decompress(base64.b64decode(text)) if text else b""
    except (ValueError, OSError, EOFError) as error:
        raise SSMError("the output was damaged on its way through Run Command") from error
