"""Run Command: AWS-RunShellScript, its limits and its odd endings.

Recorded: output keeps its beginning and ends in a note when it was cut; a failure appends its text
to stderr; bytes that are not UTF-8 become U+FFFD, each for itself.
"""

import asyncio
import os
import re
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyinfra_ssm.emulator.account import Host
from pyinfra_ssm.emulator.machines import Container, Place, reap
from pyinfra_ssm.emulator.processes import kill, start

STDOUT_LIMIT = 24_000  # characters
STDERR_LIMIT = 8_000
_CUT = "--output truncated--"
_SURROGATES = re.compile("[\udc80-\udcff]")
_DEFAULT_TIME_LIMIT = 3600
_TIME_LIMITS = range(5, 172_801)
_KILLED_EARLY = 137  # exit code of what ran past its time (source)
# A script has no home and no user: https://github.com/aws/amazon-ssm-agent/issues/427
_NOT_SET = ("HOME", "USER", "LOGNAME", "SHELL", "TERM")


@dataclass(frozen=True)
class Outcome:
    status: str
    details: str
    code: int
    stdout: str
    stderr: str


def time_limit(text: str) -> int:
    """Return executionTimeout in seconds; the agent takes its default for what is no limit."""
    seconds = int(text) if text.isdigit() else 0
    return seconds if seconds in _TIME_LIMITS else _DEFAULT_TIME_LIMIT


def decoded(output: bytes) -> str:
    """Return text with U+FFFD for each byte that is not UTF-8."""
    return _SURROGATES.sub("\ufffd", output.decode(errors="surrogateescape"))


def cut(text: str, limit: int) -> str:
    """Return the beginning of a text that is too long, the note included in the limit."""
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def outcome(code: int | None, stdout: bytes, stderr: bytes) -> Outcome:
    """Return what is reported of an ended script; a code of None is one that ran out of time."""
    if code == 0:
        status, details, failure = "Success", "Success", ""
    elif code is None:
        status, details, failure = "TimedOut", "ExecutionTimedOut", "signal: killed"
    elif code < 0:
        status, details = "Failed", "Failed"
        failure = f"signal: {signal.strsignal(-code) or -code}".lower()
    else:
        status, details, failure = "Failed", "Failed", f"exit status {code}"
    errors = decoded(stderr) + (f"failed to run commands: {failure}" if failure else "")
    number = _KILLED_EARLY if code is None else max(code, -1)
    return Outcome(
        status, details, number, cut(decoded(stdout), STDOUT_LIMIT), cut(errors, STDERR_LIMIT)
    )


class Invocation:
    """One command on one host."""

    def __init__(self, host: Host, place: Place, script: str, directory: str, limit: int) -> None:
        self.started = datetime.now(UTC)
        self.ended: datetime | None = None
        self._slots = host.slots
        unset = [name for name in _NOT_SET if name not in host.instance.environment]
        self._bare = ["env", *(f"--unset={name}" for name in unset)]
        self._place = place
        self._script = script
        self._directory = directory or "/"
        self._limit = limit
        self._outcome: Outcome | None = None
        self._answers_missing = 0
        self._endings_shown = 0
        self._task = asyncio.create_task(self._run())

    def hide(self, answers: int) -> None:
        """Deny the invocation's existence for so many answers."""
        self._answers_missing = answers

    def is_hidden(self) -> bool:
        """Say whether this answer is one of those; counts it."""
        self._answers_missing -= 1
        return self._answers_missing >= 0

    def report(self, *, late_in_progress: bool) -> dict[str, Any]:
        """Return what GetCommandInvocation says of it now."""
        done = self._outcome
        if done is None:
            return _report("InProgress", "InProgress", -1, "", "")
        self._endings_shown += 1
        if self._endings_shown == 2 and late_in_progress:
            return _report("InProgress", "InProgress", -1, done.stdout, done.stderr)
        return _report(done.status, done.details, done.code, done.stdout, done.stderr)

    async def die(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        async with self._slots:
            with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
                code = await self._execute(stdout.fileno(), stderr.fileno())
                stdout.seek(0)
                stderr.seek(0)
                self._outcome = outcome(code, stdout.read(), stderr.read())
        self.ended = datetime.now(UTC)

    async def _execute(self, stdout: int, stderr: int) -> int | None:
        process = await start(
            self._place,
            [*self._bare, *script_argv(self._script)],
            stdout=stdout,
            stderr=stderr,
            cwd=self._directory,
        )
        try:
            return await asyncio.wait_for(process.wait(), self._limit)
        except TimeoutError:
            await self._kill_group(process.pid)
            return None
        finally:
            await kill(self._place, process)

    async def _kill_group(self, pid: int) -> None:
        if isinstance(self._place.machine, Container):
            await reap(self._place.machine, self._place.mark)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def script_argv(script: str) -> list[str]:
    """Return how to run a script without a file: by `sh`, or by what its first line asks for."""
    first, _, _ = script.partition("\n")
    interpreter = first[2:].split() if first.startswith("#!") else ["sh"]
    return [*interpreter, "-c", script]


def _report(status: str, details: str, code: int, stdout: str, stderr: str) -> dict[str, Any]:
    return {
        "Status": status,
        "StatusDetails": details,
        "ResponseCode": code,
        "StandardOutputContent": stdout,
        "StandardErrorContent": stderr,
    }
