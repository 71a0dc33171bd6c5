"""The stages host, cuda and rust on a real Debian: fresh, converged, drifted, badly supplied."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container import host as hosts
from tests.container.engine import Engine
from tests.container.host import TEST_PREFIX
from tests.container.prerequisites import SWAP_FILE, Prerequisites
from tests.container.upstreams import cuda_repository

# All but the driver: the image has none.
OPERATIONS = ("repository", "packages", "swap", "account", "toolkit", "rust")
LISTS = "/etc/apt/sources.list.d"
TOOLCHAIN = "/opt/vllm-g5g/rust/rustup/toolchains/1.95-$(uname -m)-unknown-linux-gnu"
APT_RUN = Path("files/actions/apt_run.py").read_text()


@pytest.fixture(scope="module")
def converged(booted: tuple[Engine, str], data: dict[str, object]) -> Iterator[Prerequisites]:
    """A host that did what its dry run had foretold."""
    made = Prerequisites(hosts.boot(*booted, f"{TEST_PREFIX}{os.getpid()}-prerequisites"), data)
    made.give_back()
    try:
        foretold = made.plan()
        first = made.converge()
        assert first.code == 0, first.log
        assert first.changed == foretold.planned == OPERATIONS
        yield made
    finally:
        made.give_back()
        made.host.remove()


def test_a_second_run_changes_nothing(converged):
    assert converged.converge().clean


def test_the_installed_nvcc_compiles_for_the_t4g(converged):
    source = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"
    converged.run(
        f"cd /tmp && echo '{source}' >k.cu && /usr/local/cuda-13.2/bin/nvcc -arch=sm_75 -c k.cu"
    )


def test_apt_knows_the_repository_once_and_trusts_its_signature(converged):
    (path,) = converged.data["cuda_keyring_sha256"]
    url = f"{converged.data['cuda_repository']}/{path}/"
    targets = converged.run("apt-get indextargets 'Created-By: Packages'").split("\n\n")
    (ours,) = [target for target in targets if cuda_repository.PATH in target]
    assert f"Repo-URI: {url}\n" in ours
    assert "Trusted: yes\n" in ours


DRIFTS = {
    "a second list with another key": (
        f"sed 's/signed-by=[^]]*/trusted=yes/' {LISTS}/cuda-*.list >{LISTS}/cuda.list",
        "repository",
    ),
    "a second source in the other format": (
        f'awk \'{{print "Types: deb\\nURIs: " $3 "\\nSuites: /"}}\' {LISTS}/cuda-*.list '
        f">{LISTS}/nvidia.sources",
        "repository",
    ),
    "a list for another architecture": (
        f"sed 's|debian12/[a-z0-9_]*|debian12/other|' {LISTS}/cuda-*.list >{LISTS}/cuda-other.list",
        "repository",
    ),
    "list deleted": (f"rm {LISTS}/cuda-*.list", "repository"),
    "list without its key": (
        f"sed -i 's/signed-by=[^]]*/trusted=yes/' {LISTS}/cuda-*.list",
        "repository",
    ),
    "keyring file replaced": (
        f"cp /usr/share/keyrings/debian-archive-keyring.gpg /{cuda_repository.KEYRING}",
        "repository",
    ),
    "keyring package removed": ("dpkg --remove cuda-keyring", "repository"),
    "a dependency forced away": ("dpkg --remove --force-depends libtinfo6", "packages"),
    "package removed": ("dpkg --remove --force-depends libnuma1", "packages"),
    "dpkg interrupted": (
        "cd /tmp && apt-get download hello && dpkg --unpack hello_*.deb",
        "packages",
    ),
    "ptxas deleted": ("rm /usr/local/cuda-13.2/bin/ptxas", "toolkit"),
    "nvcc truncated": (": >/usr/local/cuda-13.2/bin/nvcc", "toolkit"),
    "toolkit removed": ("apt-get remove --yes cuda-nvcc-13-2", "toolkit"),
    "a header deleted": ("rm /usr/local/cuda-13.2/include/cublas_v2.h", "toolkit"),
    "rustc deleted": (f"rm {TOOLCHAIN}/bin/rustc", "rust"),
    "rust without its library": (f"rm -r {TOOLCHAIN}/lib", "rust"),
    "rustup deleted": ("rm -r /opt/vllm-g5g/rust/cargo", "rust"),
    "account deleted": ("userdel vllm", "account"),
    "account can log in": ("usermod --shell /bin/bash vllm", "account"),
    "account has a password": ("echo vllm:x | chpasswd", "account"),
    "swap off": (f"swapoff {SWAP_FILE}", "swap"),
    "swap file readable": (f"chmod 644 {SWAP_FILE}", "swap"),
    "swap file truncated": (f"swapoff {SWAP_FILE} && truncate -s 1M {SWAP_FILE}", "swap"),
    "swap file with holes": (
        f"swapoff {SWAP_FILE} && fallocate -p -o 1MiB -l 8MiB {SWAP_FILE}",
        "swap",
    ),
    "a second line in fstab": (f"echo '{SWAP_FILE} none swap sw 0 0' >>/etc/fstab", "swap"),
}


@pytest.mark.drift
@pytest.mark.parametrize(("break_it", "operation"), DRIFTS.values(), ids=DRIFTS)
def test_drift_is_named_and_mended(converged, break_it, operation):
    """Each case finds nothing but its own fault, so the one before left nothing behind."""
    converged.run(break_it)

    assert converged.plan().planned == (operation,)
    mended = converged.converge()

    assert (mended.code, mended.changed) == (0, (operation,)), mended.log
    converged.run("apt-get check")


@pytest.mark.drift
def test_a_driver_package_is_held_from_then_on(converged):
    converged.run("apt-get install --yes nvidia-driver-595")

    assert converged.plan().planned == ("driver",)
    assert converged.converge().changed == ("driver",)
    assert converged.run("apt-mark showhold") == "nvidia-driver-595"
    converged.run("apt-get purge --yes --allow-change-held-packages nvidia-driver-595")


@pytest.mark.drift
def test_after_all_drift_a_run_changes_nothing(converged):
    assert converged.converge().clean


def test_an_older_keyring_package_is_replaced(converged):
    url = f"{converged.data['cuda_repository']}/{next(iter(converged.data['cuda_keyring_sha256']))}"
    deb = f"cuda-keyring_{cuda_repository.OLD_KEYRING_VERSION}_all.deb"
    converged.run(
        f"/usr/lib/apt/apt-helper download-file {url}/{deb} /tmp/{deb} && dpkg --install /tmp/{deb}"
    )

    mended = converged.converge()

    assert mended.changed == ("repository",), mended.log
    version = converged.run("dpkg-query -W -f '${Version}' cuda-keyring")
    assert version == cuda_repository.KEYRING_VERSION


def test_where_others_point_the_cuda_link_does_not_matter(converged):
    converged.run("ln -sfn /usr/local/cuda-12.8 /usr/local/cuda")
    assert converged.plan().planned == ()


def test_a_toolkit_that_brings_a_driver_is_refused_in_the_dry_run_too(converged):
    data = {"cuda_toolkit": cuda_repository.TOOLKIT_WITH_DRIVER}
    for outcome in (converged.plan(**data), converged.converge(**data)):
        assert outcome.code != 0
        assert "would touch the driver: cuda-drivers, nvidia-driver-595" in outcome.log
    assert converged.attempt("dpkg-query -W nvidia-driver-595").returncode != 0


def test_a_rustup_init_other_than_the_pinned_is_not_run(converged):
    pins = dict.fromkeys(converged.data["rustup_sha256"], "0" * 64)

    outcome = converged.converge(rust_toolchain="1.96", rustup_sha256=pins)

    assert outcome.code != 0
    assert f"the pin says {'0' * 64}" in outcome.log
    assert converged.attempt("ls -d /opt/vllm-g5g/rust/rustup/toolchains/1.96*").returncode != 0


HOLDER = """
import fcntl, sys
lock = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock_holder(converged) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds dpkg's lock until its standard input is closed."""
    with started(converged, "--interactive", "python3", "-c", HOLDER) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder


def started(converged: Prerequisites, *arguments: str) -> "subprocess.Popen[str]":
    flags = [argument for argument in arguments if argument == "--interactive"]
    command = [argument for argument in arguments if argument not in flags]
    return subprocess.Popen(
        converged.host.engine.argv("exec", *flags, converged.host.name, *command),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_lock_of_another_process_is_waited_for(converged, lock_holder):
    with started(converged, "python3", "-c", APT_RUN, "apt-get", "check") as waiting:
        assert "waiting for /var/lib/dpkg/lock-frontend, held by python3" in (
            waiting.stderr.readline()
        )
        lock_holder.stdin.close()
        assert waiting.wait(timeout=60) == 0


def test_a_lock_that_is_not_let_go_is_an_error_that_names_its_holder(converged, lock_holder):
    done = converged.host.engine.attempt(
        "exec", converged.host.name, "python3", "-c", APT_RUN, "--wait", "0", "apt-get", "check"
    )
    assert done.returncode == 75
    assert "lock-frontend is still held by python3" in done.stderr


SNAP = """#!/bin/sh
# A stand-in for snap(1): one snap, whose hold is a file.
case $1 in
list) printf 'Name Notes\\n%s classic%s\\n' "$2" "$(test ! -e /tmp/hold || echo ,held)" ;;
refresh) echo "$2" >>/tmp/snap.log
  case $2 in --hold*) touch /tmp/hold ;; --unhold) rm /tmp/hold ;; esac ;;
esac
"""


@pytest.mark.parametrize(
    ("before", "calls"),
    [("rm -f /tmp/hold", ["--hold=3h", "--unhold"]), ("touch /tmp/hold", [])],
    ids=["nobody held it", "somebody else holds it"],
)
def test_the_agents_snap_is_held_meanwhile_and_let_go_by_who_held_it(converged, before, calls):
    host = converged.host
    host.run(f"{before}; : >/tmp/snap.log")
    host.engine.run(
        "exec", host.name, "python3", "-c",
        f"import os; open('/usr/local/bin/snap', 'w').write({SNAP!r}); "
        "os.chmod('/usr/local/bin/snap', 0o755)",
    )  # fmt: skip
    try:
        host.engine.run("exec", host.name, "python3", "-c", APT_RUN, "apt-get", "check")
        assert host.run("cat /tmp/snap.log").split() == calls
        assert host.attempt("test -e /tmp/hold").returncode == (1 if calls else 0)
    finally:
        host.run("rm -f /usr/local/bin/snap /tmp/hold")
