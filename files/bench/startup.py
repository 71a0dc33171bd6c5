"""Wait until a service answers in words, restarting it first where asked to; say how it goes.

Started means that a chat completion came back with text that makes sense: a broken endpoint answers
with repeated tokens.
"""

import argparse
import re
import subprocess

from .readiness import Timer
from .service_state import add_arguments as add_asking_arguments
from .service_state import ask, unit_state
from .text import degenerate

EXIT_DIED, EXIT_LATE, EXIT_NONSENSE = 1, 2, 3
LOG_PREFIX = re.compile(r"^(\(\w[^)]* pid=\d+\) )?(?:[A-Z]+ [\d-]+ [\d:]+ )?(\[\w+\.py:\d+\] )?")
POLL_SECONDS = 1.0
PROGRESS_SECONDS = 5.0
FIRST_ANSWER_SECONDS = 300  # the first request compiles kernels


def wait(options: argparse.Namespace, timer: Timer) -> int:
    """Wait for a sane answer; return 0, or why there is none as an exit status."""
    restarts = int(unit_state(options.unit).get("NRestarts") or 0)
    if options.restart:
        subprocess.run(["systemctl", "reset-failed", options.unit], check=False)
        if subprocess.run(["systemctl", "restart", "--no-block", options.unit]).returncode:
            return EXIT_DIED
        restarts = 0
    begun = shown = timer.now()
    while timer.now() - begun < options.deadline:
        now = unit_state(options.unit)
        # Until systemd has done its job it is the old process that answers, or one that it started
        # by itself in place of one that died meanwhile.
        verdict = None if now.get("Job") else look(options, restarts, now)
        if verdict is not None:
            return verdict
        if timer.now() - shown >= PROGRESS_SECONDS:
            shown = timer.now()
            say(f"{shown - begun:4.0f} s of {options.deadline}: {activity(options.unit, now)}")
        timer.wait(POLL_SECONDS)
    say(f"{options.unit} has not answered a chat completion within {options.deadline} s")
    return EXIT_LATE


def look(options: argparse.Namespace, restarts: int, now: dict[str, str]) -> int | None:
    """Return the exit status once the outcome is known, None while it is not.

    `restarts` is how often systemd had restarted the unit before. One death is enough: what kills
    a server at its start is there at the next one too.
    """
    active, sub = now.get("ActiveState"), now.get("SubState")
    again = int(now.get("NRestarts") or 0) > restarts
    if again or sub == "auto-restart" or active in ("failed", "inactive"):
        result, status = now.get("Result"), now.get("ExecMainStatus")
        # What failed before the main process ever ran left that at 0.
        how = f"{result}, exit status {status}" if status != "0" or result == "success" else result
        say(f"{options.unit} died while starting ({how}, invocation {now.get('InvocationID')})")
        return EXIT_DIED
    if active != "active":
        return None
    answer = ask(options, timeout=FIRST_ANSWER_SECONDS)
    if answer["status"] == 200:
        return judge(options, answer["text"])
    if answer["status"] in (0, 429, 503):
        return None
    say(f"{options.url} answered a chat with {answer['status']}: {answer['error']}")
    return EXIT_NONSENSE


def judge(options: argparse.Namespace, text: str) -> int:
    """Say what was answered; return the exit status that it deserves."""
    if wrong := degenerate(text):
        say(f"degenerate text from {options.url}: {wrong}")
        return EXIT_NONSENSE
    say(f"asked {options.question!r}, answered {' '.join(text.split())!r}")
    return 0


def activity(unit: str, now: dict[str, str]) -> str:
    """Return what the unit does right now: its latest journal line."""
    latest = subprocess.run(
        ["journalctl", "--unit", unit, "--lines", "1", "--output", "cat", "--no-pager"],
        capture_output=True,
        text=True,
        check=False,
    )
    line = LOG_PREFIX.sub("", " ".join(latest.stdout.split()))
    return f"{now.get('ActiveState')} ({now.get('SubState')}) {line[:100]}"


def say(line: str) -> None:
    print(line, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_asking_arguments(parser)
    parser.add_argument("--deadline", type=int, default=1800, help="seconds")
    parser.add_argument("--restart", action="store_true", help="restart the unit first")


def main(options: argparse.Namespace) -> int:
    """Wait; the lines that it prints meanwhile are for people."""
    return wait(options, Timer())
