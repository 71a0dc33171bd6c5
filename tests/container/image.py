"""The image of the stand-in: what a Deep Learning AMI carries, built from Debian's packages.

It carries a bare Debian 12 with systemd, an unprivileged user that may use sudo, and a Python
with torch in /opt/pytorch. What the AMI lacks or a deploy is to bring (git, a compiler, libnuma)
is left out, since bringing it is what is tested.
"""

import hashlib
import json
import os
from pathlib import Path

from tests.container import machine
from tests.container.console import StepFailed, run_live
from tests.container.engine import Engine, boot_flags, choose_runtime
from tests.container.machine import Machine

REPOSITORY = "localhost/vllm-g5g-host"
PACKAGES = [
    *("systemd", "systemd-sysv", "dbus", "python3", "python3-venv", "sudo"),
    *("ca-certificates", "procps", "iproute2"),
]
# The CPU build of the torch that vLLM 0.32.0 pins; the AMI has a CUDA build in the same place.
TORCH = "2.13.0+cpu"
PIP = "25.3"
TORCH_INDEX_URL = os.environ.get("TORCH_INDEX_URL", "https://download.pytorch.org/whl/cpu")

# Run in the base image with the versions of pip and torch and the index as arguments.
# Masked: a privileged container shares the kernel, and these three would set this machine's up.
# Disabled: apt's timers take the dpkg lock at a random moment.
INSIDE = """
set -eu
systemctl mask systemd-sysctl.service systemd-modules-load.service systemd-binfmt.service
systemctl disable apt-daily.timer apt-daily-upgrade.timer
useradd --create-home --shell /bin/bash ssm-user
echo 'ssm-user ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/ssm-agent-users
chmod 440 /etc/sudoers.d/ssm-agent-users
python3 -m venv /opt/pytorch
pip="/opt/pytorch/bin/pip install --progress-bar off"
$pip "pip==$1"
# PyTorch's own index is asked only where this machine's do not have that build.
$pip --quiet --dry-run --no-deps "torch==$2" || pip="$pip --extra-index-url $3"
$pip "torch==$2"
/opt/pytorch/bin/python3 -c 'import torch; print(torch.__version__)'
"""


def recipe_digest() -> str:
    """Return a short digest of all that decides what is in the image."""
    recipe = json.dumps([PACKAGES, PIP, TORCH, INSIDE])
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def ensure(engine: Engine, cache: Path) -> tuple[Engine, str]:
    """Return the engine with a runtime that works, and the image's name; build what is missing.

    `cache` is a folder for the package cache and the build's log.
    """
    tag = f"{REPOSITORY}:{recipe_digest()}"
    base = f"{REPOSITORY}-base:{hashlib.sha256(' '.join(PACKAGES).encode()).hexdigest()[:12]}"
    host = machine.read()
    log = cache / "image.log"
    if not exists(engine, base):
        _build_base(engine, base, host, cache, log)
    engine = choose_runtime(engine, base)
    if not exists(engine, tag):
        _build_host(engine, base, tag, host, cache, log)
    return engine, tag


def exists(engine: Engine, tag: str) -> bool:
    """Tell whether the engine has an image of this name."""
    return engine.attempt("image", "inspect", tag).returncode == 0


def configure(engine: Engine, name: str, host: Machine, cache: Path) -> None:
    """Write this machine's pip and apt set-up into a container, running or not."""
    files = {"/etc/pip.conf": machine.pip_conf(host.pip)}
    if host.apt_conf:
        files["/etc/apt/apt.conf.d/90-machine"] = host.apt_conf
    for number, (path, content) in enumerate(files.items()):
        source = cache / "machine" / str(number)
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(content)
        engine.run("cp", str(source), f"{name}:{path}")


def mounts(host: Machine, cache: Path) -> list[str]:
    """Return the engine's flags that lend this machine's certificates, folders and pip cache."""
    pip_cache = cache / "pip"
    pip_cache.mkdir(parents=True, exist_ok=True)
    flags = ["--volume", f"{pip_cache.resolve()}:{machine.PIP_CACHE}"]
    for path in host.mounts:
        flags += ["--volume", f"{path}:{path}:ro"]
    return flags


def _build_base(engine: Engine, base: str, host: Machine, cache: Path, log: Path) -> None:
    archive = cache / "rootfs.tar"
    cache.mkdir(parents=True, exist_ok=True)
    options = [f"--aptopt={line}" for line in host.apt_conf.splitlines()]
    run_live(
        ["mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", *options,
         "bookworm", str(archive), *host.apt_sources],
        doing="bootstrapping Debian 12", log=log,
    )  # fmt: skip
    try:
        run_live(engine.argv("import", str(archive), base), doing="importing it", log=log)
    finally:
        archive.unlink()


def _build_host(engine: Engine, base: str, tag: str, host: Machine, cache: Path, log: Path) -> None:
    name = f"vllm-g5g-image-{recipe_digest()}"
    engine.attempt("rm", "--force", name)
    engine.run(
        "create", "--name", name, *boot_flags(engine), *mounts(host, cache), base,
        "/bin/sh", "-c", INSIDE, "inside", PIP, TORCH, TORCH_INDEX_URL,
    )  # fmt: skip
    try:
        configure(engine, name, host, cache)
        run_live(engine.argv("start", "--attach", name), doing=f"installing torch {TORCH}", log=log)
        run_live(
            engine.argv("commit", "--change", 'CMD ["/sbin/init"]', name, tag),
            doing="committing the image", log=log,
        )  # fmt: skip
    except StepFailed as error:
        raise StepFailed(
            f"{error}\nIf no index has torch {TORCH}, set TORCH_INDEX_URL to one that does."
        ) from error
    finally:
        engine.attempt("rm", "--force", name)
