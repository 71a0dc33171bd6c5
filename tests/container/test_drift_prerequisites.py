"""The stages host, cuda and rust on a real Debian: fresh, converged, drifted, badly supplied."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container.prerequisites import SWAP_FILE, Bench, bench
from tests.container.upstreams import cuda_repository, rustup_archive

OPERATIONS = ("repository", "packages", "swap", "account", "toolkit", "rust")
LISTS = "/etc/apt/sources.list.d"
TOOLCHAIN = "/opt/vllm-g5g/rust/rustup/toolchains/1.95-$(uname -m)-unknown-linux-gnu"
APT_RUN = Path("files/actions/apt_run.py").read_text()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Iterator[tuple[Bench, tuple[str, ...]]]:
    """A converged host, and what a dry run had foretold before it was."""
    with bench(tmp_path_factory.mktemp("web")) as made:
        foretold = made.dry_run()
        first = made.run()
        assert first.code == 0, first.log
        assert first.changed == foretold.planned == OPERATIONS
        yield made, foretold.planned


@pytest.fixture
def converged(fresh) -> Bench:
    return fresh[0]


def test_a_second_run_changes_nothing(converged):
    assert converged.run().clean


def test_the_installed_nvcc_compiles_for_the_t4g(converged):
    source = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"
    converged.host.run(
        f"cd /tmp && echo '{source}' >k.cu && /usr/local/cuda-13.2/bin/nvcc -arch=sm_75 -c k.cu"
    )


def test_apt_trusts_the_repository_by_its_own_key_alone(converged):
    (path,) = converged.data["cuda_keyring_sha256"]
    url = f"{converged.data['cuda_repository']}/{path}/"
    targets = converged.host.run(f"apt-get indextargets 'Repo-URI: {url}' 'Created-By: Packages'")
    assert targets.count(f"Repo-URI: {url}\n") == 1
    assert f"Signed-By: /{cuda_repository.KEYRING}\n" in targets


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
    "package removed": ("dpkg --remove --force-depends libnuma1", "packages"),
    "dpkg interrupted": (
        "cd /tmp && apt-get download hello && dpkg --unpack hello_*.deb",
        "packages",
    ),
    "ptxas deleted": ("rm /usr/local/cuda-13.2/bin/ptxas", "toolkit"),
    "nvcc truncated": (": >/usr/local/cuda-13.2/bin/nvcc", "toolkit"),
    "toolkit removed": ("dpkg --remove --force-depends cuda-nvcc-13-2", "toolkit"),
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
    converged.host.run(break_it)

    assert converged.dry_run().planned == (operation,)
    mended = converged.run()

    assert (mended.code, mended.changed) == (0, (operation,)), mended.log
    converged.host.run("apt-get check")


@pytest.mark.drift
def test_after_all_drift_a_run_changes_nothing(converged):
    assert converged.run().clean


def test_an_older_keyring_package_is_replaced(converged):
    url = f"{converged.data['cuda_repository']}/{next(iter(converged.data['cuda_keyring_sha256']))}"
    deb = f"cuda-keyring_{cuda_repository.OLD_KEYRING_VERSION}_all.deb"
    converged.host.run(
        f"/usr/lib/apt/apt-helper download-file {url}/{deb} /tmp/{deb} && dpkg --install /tmp/{deb}"
    )

    mended = converged.run()

    assert mended.changed == ("repository",), mended.log
    version = converged.host.run("dpkg-query -W -f '${Version}' cuda-keyring")
    assert version == cuda_repository.KEYRING_VERSION


def test_where_others_point_the_cuda_link_does_not_matter(converged):
    converged.host.run("ln -sfn /usr/local/cuda-12.8 /usr/local/cuda")
    assert converged.dry_run().planned == ()


def test_a_toolkit_that_brings_a_driver_is_refused_in_the_dry_run_too(converged):
    data = {"cuda_toolkit": cuda_repository.TOOLKIT_WITH_DRIVER}
    for outcome in (converged.dry_run(**data), converged.run(**data)):
        assert outcome.code != 0
        assert "would touch the driver: cuda-drivers, nvidia-driver-595" in outcome.log
    assert converged.host.attempt("dpkg-query -W nvidia-driver-595").returncode != 0


def test_a_rustup_init_other_than_the_published_is_not_run(converged):
    (triple,) = converged.host.run("echo $(uname -m)-unknown-linux-gnu").split()
    installer = (
        converged.web / rustup_archive.PATH / rustup_archive.VERSION / triple / "rustup-init"
    )
    installer.write_text("#!/bin/sh\ntouch /was-run\n")
    try:
        pinned = converged.run(rust_toolchain="1.96")
        published = converged.run(rust_toolchain="1.96", rustup_sha256={})
    finally:
        installer.write_text(rustup_archive.RUSTUP_INIT)

    assert pinned.failed == published.failed == ("rust",)
    assert "the pin says" in pinned.log
    assert "the checksum published beside it says" in published.log
    assert converged.host.attempt("test -e /was-run").returncode != 0


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
        assert holder.stdout.readline() == "held\n"
        yield holder


def started(converged: Bench, *arguments: str) -> "subprocess.Popen[str]":
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
