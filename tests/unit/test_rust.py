"""The planner of the Rust toolchain, and its steps against a stand-in for rustup's archive."""

import fcntl
import functools
import http.server
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from operations import rust
from operations.rust import Rustup, plan
from operations.steps import Refusal
from tests.container.upstreams import rustup_archive
from tests.loopback import serving
from tests.unit.converge import converge

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


class Archive(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture
def wanted(tmp_path):
    """The arguments of the operation: where the toolchain goes, and a rustup-init to install it."""
    web = tmp_path / "web"
    handler = functools.partial(Archive, directory=web)
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        published = rustup_archive.publish(web, server.server_port)
        rustup = Rustup(rustup_archive.VERSION, published.sha256, published.archive_url)
        yield {"home": str(tmp_path / "rust"), "toolchain": "1.95", "rustup": rustup}


def toolchain_of(wanted):
    (toolchain,) = Path(wanted["home"], "rustup", "toolchains").iterdir()
    return toolchain


def started(step):
    return subprocess.Popen(
        ["sh", "-c", step.command.get_raw_value()], stdout=subprocess.PIPE, text=True
    )


def steps(wanted, **state):
    found = {**ABSENT, "machine": os.uname().machine, **state}
    return plan(found, wanted["home"], wanted["toolchain"], wanted["rustup"])


def test_a_toolchain_is_installed_and_a_broken_one_made_anew(wanted):
    assert converge(rust.present, **wanted)
    assert not converge(rust.present, **wanted)
    shutil.rmtree(toolchain_of(wanted) / "lib")
    assert converge(rust.present, **wanted)
    assert not converge(rust.present, **wanted)


def test_an_installation_waits_for_the_one_that_is_at_work_and_says_so(wanted):
    home = Path(wanted["home"])
    home.mkdir()
    held = os.open(home, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    install, check = steps(wanted)
    with started(install) as process:
        assert process.stdout.readline() == (
            f"waiting for what an earlier run is still at (it holds {home})\n"
        )
        assert list(home.iterdir()) == []
        os.close(held)
        process.stdout.read()
    assert process.returncode == 0
    with started(check) as process:
        assert process.stdout.read() == "rustc 1.95.0 (stand-in)\n"


def test_two_installations_at_once_both_end_well(wanted):
    install, _ = steps(wanted)
    with started(install) as one, started(install) as other:
        one.stdout.read()
        other.stdout.read()
    assert (one.returncode, other.returncode) == (0, 0)
    assert not converge(rust.present, **wanted)


def test_what_another_run_was_not_done_with_yet_is_not_removed(wanted):
    converge(rust.present, **wanted)
    remove, *_ = steps(wanted, directory=True)  # as it was found while the other was at work
    with started(remove) as process:
        process.stdout.read()
    assert process.returncode == 0
    assert not converge(rust.present, **wanted)
