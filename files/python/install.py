"""Install a hashed lock file, given on standard input, and show how far it is.

Arguments: the interpreter to install into; how many distributions the lock names for it.
"""

import os
import subprocess
import sys
import tempfile
import time

SHOW_EVERY = 3.0  # seconds between lines of progress
TAIL = 20  # lines of pip's output that a failure shows
COUNTED = ("Collecting ", "Requirement already satisfied: ")


def pip_command(python, lock):
    options = ["--no-deps", "--require-hashes", "--no-input", "--progress-bar", "off"]
    options += ["--root-user-action", "ignore", "--disable-pip-version-check"]
    return [python, "-m", "pip", "install", *options, "-r", lock]


def follow(process, total):
    """Print progress; return pip's last lines."""
    tail, collected, shown_at = [], 0, time.monotonic()
    for line in process.stdout:
        tail = [*tail, line.rstrip()][-TAIL:]
        collected += line.startswith(COUNTED)
        if line.startswith("Installing collected"):
            print(f"installing {total} distributions", flush=True)
        elif time.monotonic() - shown_at > SHOW_EVERY:
            print(f"collected {collected} of {total} distributions", flush=True)
            shown_at = time.monotonic()
    return tail


def main(python, total):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write(sys.stdin.read())
        lock.flush()
        process = subprocess.Popen(
            pip_command(python, lock.name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        tail = follow(process, int(total))
    if process.wait() != 0:
        print("\n".join(tail))
        sys.exit(f"pip could not install the lock into {python}; its last lines are above")


main(*sys.argv[1:])
