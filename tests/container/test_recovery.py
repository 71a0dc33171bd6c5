"""Runs that are killed, hosts that reboot under them, and drift made while a run is going on.

pyinfra is killed with SIGKILL: it tells the host nothing, and what the host was at goes on.
"""

import random
from collections.abc import Iterator
from itertools import islice

from tests.container.stand_in import StandIn

STATE = "/var/lib/vllm-g5g"
TREE = "/opt/vllm-g5g/src"
SITE = "/opt/pytorch/lib/python3.11/site-packages"
FORGET_BUILD = f"rm -rf {TREE} {STATE}/build.json {STATE}/build"
# Work for most stages: a package, a distribution, tree, build, checkpoint, unit and smoke check.
BREAK = (
    "dpkg --purge --force-depends libnuma1; rm -rf "
    f"{SITE}/einops* {STATE}/models/tiny* {STATE}/smoke.json /etc/systemd/system/vllm.service; "
    f"{FORGET_BUILD}"
)
SEED = 75
OPERATIONS = 20  # of a run on a stand-in
CUTS = 10
CHANCE = random.Random(SEED)
# The operation that a run is killed in, each time a later one, and how many lines later.
MOMENTS = [(at, CHANCE.randrange(3)) for at in sorted(CHANCE.sample(range(OPERATIONS), CUTS))]

DIRECTORIES = "Ensure the directories exist"
SOURCE = "Ensure the tree is vLLM 0.32.0 with our patches"
STARTS = "--> Starting operation: "
BUILD_STARTS = f"{STARTS}Ensure vLLM"
SMOKE_STARTS = f"{STARTS}Ensure what is served passed the smoke check"


def killed_at(host: StandIn, operation: int, later: int) -> str:
    """Kill a run so many lines after the start of an operation; return the last line before."""
    with host.going_on() as (process, lines):
        starts = (line for line in lines if line.startswith(STARTS))
        next(islice(starts, operation, None))
        last = next(islice(lines, later, None))
        process.kill()
    return last


def until(lines: Iterator[str], start: str) -> None:
    """Read on up to the line that starts so."""
    assert any(line.startswith(start) for line in lines), f"the run ended before {start!r}"


def converges(host: StandIn) -> None:
    run = host.converge()
    assert run.code == 0, run.log[-4000:]
    plan = host.plan()
    assert plan.clean, plan.log[-4000:]


def test_after_runs_killed_at_random_moments_the_next_one_converges(host: StandIn) -> None:
    host.run(BREAK)
    for operation, later in MOMENTS:
        print(f"killed in operation {operation} after", killed_at(host, operation, later))
    converges(host)


def test_after_a_reboot_in_the_middle_of_the_build_the_next_run_converges(host: StandIn) -> None:
    host.run(FORGET_BUILD)
    with host.going_on() as (process, lines):
        until(lines, BUILD_STARTS)
        next(lines)
        process.kill()
    host.host.restart()
    converges(host)


def test_drift_made_while_a_run_is_going_on_is_found_by_the_next(host: StandIn) -> None:
    host.run(f"rm {STATE}/smoke.json")
    with host.going_on() as (process, lines):
        until(lines, SMOKE_STARTS)
        host.run(f"echo '# edit' >>{TREE}/setup.py; chmod 777 /opt/vllm-g5g")
        last = "".join(lines)
    assert process.returncode == 0, last
    assert host.plan().planned == (DIRECTORIES, SOURCE)
    assert host.converge().changed == (DIRECTORIES, SOURCE)
    assert host.plan().clean
