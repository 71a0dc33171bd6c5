"""Commands that must not meet: what a killed run is still at, and what the next one would do."""

import fcntl
import os
import subprocess
from pathlib import Path

from pyinfra.api import StringCommand

from operations.programs import alone


def started(command: StringCommand) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        ["sh", "-c", command.get_raw_value()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_command_waits_for_the_one_that_is_at_work_and_says_so(tmp_path: Path) -> None:
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with started(alone(StringCommand("cat"), str(tmp_path))) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == (
            f"waiting for what an earlier run is still at (it holds {tmp_path})\n"
        )
        os.close(held)
        assert process.communicate("input")[0] == "input"
    assert process.returncode == 0


def test_a_command_that_waits_for_nobody_says_nothing_and_lets_go(tmp_path: Path) -> None:
    lock = tmp_path / "python3"
    lock.touch()
    for _ in range(2):
        with started(alone(StringCommand("sh", "-c", "'cat; exit 3'"), str(lock))) as process:
            assert process.communicate("input")[0] == "input"
        assert process.returncode == 3
