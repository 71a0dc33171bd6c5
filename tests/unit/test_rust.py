"""The planner of the Rust toolchain."""

import re

import pytest

from operations.rust import Rustup, plan
from operations.steps import Refusal

HOME = "/opt/vllm-g5g/rust"
RUSTUP = Rustup("1.28.2", {"aarch64-unknown-linux-gnu": "e3" * 32})
NAME = "1.95-aarch64-unknown-linux-gnu"
RUSTC = f"{HOME}/rustup/toolchains/{NAME}/bin/rustc"
WORKS = {
    "machine": "aarch64",
    "directory": True,
    "rustc": "1.95.0",
    "cargo": "1.95.0",
    "standard_library": True,
}
ABSENT = {**WORKS, "directory": False, "rustc": None, "cargo": None, "standard_library": False}


def broken(fault):
    return [
        f"the toolchain {NAME} is broken: {fault}",
        f"Rust 1.95 is to be installed: {fault}",
        f"{RUSTC} must be version 1.95",
    ]


PLANS = {
    "works": (WORKS, []),
    "exactly the version": ({**WORKS, "rustc": "1.95"}, []),
    "absent": (
        ABSENT,
        ["Rust 1.95 is to be installed: it is not there", f"{RUSTC} must be version 1.95"],
    ),
    "half installed": (
        {**ABSENT, "directory": True},
        broken("its directory is there, but rustc does not run"),
    ),
    "another version in its directory": (
        {**WORKS, "rustc": "1.9.5"},
        broken("rustc is 1.9.5"),
    ),
    "a longer version is another": ({**WORKS, "rustc": "1.950.0"}, broken("rustc is 1.950.0")),
    "no standard library": (
        {**WORKS, "standard_library": False},
        broken("it has no standard library"),
    ),
    "no cargo": ({**WORKS, "cargo": None}, broken("cargo does not run")),
}


@pytest.mark.parametrize(("state", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(state, reasons):
    assert [step.reason for step in plan(state, HOME, "1.95", RUSTUP)] == reasons


def test_a_machine_without_rustup_is_refused():
    (step,) = plan({**ABSENT, "machine": "riscv64"}, HOME, "1.95", RUSTUP)
    assert isinstance(step, Refusal)
    assert "'riscv64'" in step.message


@pytest.mark.parametrize(("machine", "pin"), [("aarch64", "e3" * 32), ("x86_64", "-")])
def test_rustup_init_is_checked_before_it_runs(machine, pin):
    install, _ = plan({**ABSENT, "machine": machine}, HOME, "1.95", RUSTUP)
    url = f"https://static.rust-lang.org/rustup/archive/1.28.2/{machine}-unknown-linux-gnu"
    wanted = (
        rf"--published {url}/rustup-init {HOME}/rustup-init {pin} && env "
        rf"RUSTUP_HOME={HOME}/rustup CARGO_HOME={HOME}/cargo .* {HOME}/rustup-init -y "
        r"--no-modify-path --profile minimal --default-toolchain 1\.95 && rm"
    )
    assert re.search(wanted, install.command.get_raw_value())
