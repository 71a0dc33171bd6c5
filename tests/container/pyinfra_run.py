"""Run pyinfra as a user does, and say truthfully what it would do or did."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from tests.container.host import Host

ROOT = Path(__file__).resolve().parents[2]
# Lines of pyinfra's own log.
_STARTS = "--> Starting operation: "
_RESULTS = "--> Results:"
INVENTORY = Path(__file__).with_name("inventory.py")


@dataclass(frozen=True)
class Run:
    """What one run of pyinfra came to; operations by name, in the order in which they ran.

    `planned` is what a dry run foretold (with --yes pyinfra does not look ahead), `changed` what
    yielded a command. When a host fails while pyinfra prepares there is no report: all are empty.
    """

    code: int
    planned: tuple[str, ...]
    changed: tuple[str, ...]
    failed: tuple[str, ...]
    log: str  # all that pyinfra showed
    seconds: Mapping[str, float] = field(default_factory=dict)  # by operation, as they ran

    @property
    def clean(self) -> bool:
        """True where it ended well and nothing was foretold or changed."""
        return self.code == 0 and not self.planned and not self.changed and not self.failed


def run(
    host: Host,
    data: Mapping[str, object],
    *flags: str,
    deploy: str = "deploy.py",
    show: bool = False,
    log: Path | None = None,
) -> Run:
    """Run `deploy` on the stand-in with its inventory data; `show` passes its lines on.

    Flags are pyinfra's own; "--dry" foretells and writes nothing.
    """
    agreed = () if "--dry" in flags else ("--yes",)
    command = [sys.executable, "-m", "pyinfra", str(INVENTORY), deploy, "--json", *agreed, *flags]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment_of(host, data), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        shown: list[tuple[float, str]] = []
        reader = threading.Thread(target=_follow, args=(process.stderr, shown, show))
        reader.start()
        try:
            report = process.stdout.read()
        finally:
            reader.join()  # at Ctrl-C too, which pyinfra gets as well: it has last words
    text = "".join(line for _, line in shown)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
    return replace(outcome(process.returncode, report, text), seconds=durations(shown))


@contextmanager
def going_on(
    host: Host, data: Mapping[str, object]
) -> Iterator[tuple["subprocess.Popen[str]", Iterator[str]]]:
    """Yield a run of deploy.py that is going on, and its lines as they come.

    At the end of the block it is waited for, so read its lines up or end it.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "pyinfra", str(INVENTORY), "deploy.py", "--yes"],
        cwd=ROOT,
        env=environment_of(host, data),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        yield process, iter(process.stderr)


def environment_of(host: Host, data: Mapping[str, object]) -> dict[str, str]:
    """Return what the environment of pyinfra must have for INVENTORY to name that host."""
    stand_in = json.dumps({"address": host.address, "data": dict(data)})
    own = {"VLLM_G5G_STAND_IN": stand_in, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **host.environment, **own}


def outcome(code: int, report: str, log: str) -> Run:
    """Return what pyinfra's JSON report says; an empty report is a run that came to nothing."""
    try:
        parsed: dict[str, Any] = json.loads(report)
    except ValueError:
        return Run(code or 1, (), (), (), log)
    results = parsed["results"] or {"operations": []}
    return Run(
        code,
        planned=_names(parsed["plan"], "hosts_with_change", "hosts_with_conditional_change"),
        changed=_names(results["operations"], "success"),
        failed=_names(results["operations"], "error"),
        log=log,
    )


def durations(shown: Sequence[tuple[float, str]]) -> dict[str, float]:
    """Return {operation: seconds} from lines and the seconds at which each came."""
    marks = [(at, line.removeprefix(_STARTS).strip()) for at, line in shown if _is_mark(line)]
    return {name: round(until - at, 1) for (at, name), (until, _) in pairwise(marks)}


def _is_mark(line: str) -> bool:
    return line.startswith((_STARTS, _RESULTS))


def _names(operations: Sequence[Mapping[str, Any]], *keys: str) -> tuple[str, ...]:
    return tuple(
        operation["names"][0] for operation in operations if any(operation[key] for key in keys)
    )


def _follow(source: IO[str], shown: list[tuple[float, str]], show: bool) -> None:
    for line in source:
        shown.append((time.monotonic(), line))
        if show:
            sys.stderr.write(line)
            sys.stderr.flush()
