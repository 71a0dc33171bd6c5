"""Many hosts at once against one: time on a few cores, and memory."""

import json
import sys
from collections.abc import Iterator
from subprocess import PIPE, run

from benchmarks.ssm.hosts import ONE_WAY_MS, surroundings
from benchmarks.ssm.target import Target
from pyinfra_ssm.emulator import Emulator, Faults, Instance

HOSTS, COMMANDS = 50, 20


def measure() -> Iterator[Target]:
    """Compare one host with many, each in a process of its own."""
    one, many = (_measured(count) for count in (1, HOSTS))
    yield Target(f"hosts-{HOSTS}", many["seconds"], 4 * one["seconds"], "s")
    megabytes = (many["bytes"] - one["bytes"]) / (HOSTS - 1) / 1e6
    yield Target("memory-per-host", megabytes, 8, "MB")


def _measured(hosts: int) -> dict[str, float]:
    fleet = [Instance(instance_id=f"i-{number:017x}") for number in range(hosts)]
    with (
        Emulator(Faults(delay_ms=ONE_WAY_MS), fleet) as emulator,
        surroundings(emulator.environment),
    ):
        command = [sys.executable, "-m", "benchmarks.ssm.fleet", str(hosts), str(COMMANDS)]
        printed = run(command, stdout=PIPE, check=True).stdout
    figures: dict[str, float] = json.loads(printed)
    return figures
