"""A container that stands in for one GPU host: boot it, ask it, commit it, remove it.

`python -m tests.container.host up|down [NAME]` does the first and the last by hand.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.container import engine as engines
from tests.container import image, machine
from tests.container.console import StepFailed
from tests.container.engine import Engine, boot_flags

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
TRY_NAME = "vllm-g5g-try"
TEST_PREFIX = "vllm-g5g-test-"
BOOT_SECONDS = 60


@dataclass(frozen=True)
class Host:
    """One running container, and how pyinfra reaches it."""

    engine: Engine
    name: str
    instance: str | None = None  # its id, where an emulated Systems Manager is in front of it
    environment: Mapping[str, str] = field(default_factory=dict)  # that pyinfra needs for that

    @property
    def address(self) -> str:
        """The name of this host for pyinfra: @ssm/INSTANCE or, without one, @podman/NAME."""
        if self.instance is not None:
            return f"@ssm/{self.instance}"
        return f"@{self.engine.program}/{self.name}"

    def attempt(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Run a shell script as root inside, whatever comes of it."""
        return self.engine.attempt("exec", self.name, "sh", "-c", script)

    def run(self, script: str) -> str:
        """Run a shell script as root inside and return what it printed.

        Raises:
            StepFailed: it exited non-zero; the message carries its standard error.
        """
        return self.engine.run("exec", self.name, "sh", "-c", script)

    def commit(self, tag: str) -> None:
        """Save the file system as an image. Services go on; what is mounted is not in it."""
        self.engine.run("commit", self.name, tag)

    def restart(self) -> None:
        """Boot it anew, as a reboot does: every process ends, the file system stays.

        Raises:
            StepFailed: systemd does not come up again.
        """
        self.engine.run("restart", "--time", "30", self.name)
        _wait_for_systemd(self)

    def remove(self) -> None:
        """End the container and drop its file system, where it exists.

        Raises:
            StepFailed: it is still there; the message has what the engine said.
        """
        patience = ("--time", "2") if self.engine.program == "podman" else ()
        for _ in range(2):  # podman has refused once while a shell inside was ending
            done = self.engine.attempt("rm", "--force", *patience, self.name)
            if self.engine.attempt("container", "inspect", self.name).returncode:
                return
        raise StepFailed(f"[{self.name}] cannot remove the container: {done.stderr.strip()}")


def boot(engine: Engine, image_name: str, name: str) -> Host:
    """Start a fresh container of that name and wait until systemd has started everything.

    Raises:
        StepFailed: systemd does not come up within BOOT_SECONDS; the message has what failed.
    """
    host = Host(engine, name)
    host.remove()
    this = machine.read()
    engine.run(
        "run", "--detach", "--name", name, *boot_flags(engine), *image.mounts(this, CACHE),
        image_name, "/sbin/init",
    )  # fmt: skip
    image.configure(engine, name, this, CACHE)
    _wait_for_systemd(host)
    return host


def find(engine: Engine, name: str, image_name: str | None = None) -> Host | None:
    """Return the container of that name where it exists and runs, started if it was stopped.

    With `image_name`, only if it was booted from what that name now stands for.
    """
    form = "{{.State.Running}} {{.Image}}"
    state = engine.attempt("container", "inspect", "--format", form, name)
    if state.returncode:
        return None
    running, image_id = state.stdout.split()
    if image_name and image_id != engine.run("image", "inspect", "--format", "{{.Id}}", image_name):
        return None
    host = Host(engine, name)
    if running != "true":
        if engine.attempt("start", name).returncode:
            return None  # as after a crash of the engine: it is booted anew
        _wait_for_systemd(host)
    return host


def _wait_for_systemd(host: Host) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    state = "not started"
    while time.monotonic() < deadline:
        # --wait ends the moment that the boot does; before D-Bus is there it fails at once.
        state = host.attempt("systemctl is-system-running --wait").stdout.strip()
        if state == "running":
            return
        if state == "degraded":
            break
        time.sleep(0.2)
    failed = host.attempt("systemctl --failed --plain --no-legend").stdout.strip()
    raise StepFailed(
        f"[{host.name}] systemd is {state or 'not answering'}, wanted running. Failed units: "
        f"{failed or 'none'}. See `{host.engine.program} logs {host.name}`."
    )


def main(arguments: list[str]) -> int:
    """Bring a stand-in up or take it down by hand."""
    parser = argparse.ArgumentParser(prog="python -m tests.container.host", description=__doc__)
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("name", nargs="?", default=TRY_NAME)
    chosen = parser.parse_args(arguments)
    try:
        engine = engines.find()
        if chosen.action == "down":
            Host(engine, chosen.name).remove()
            return 0
        engine, image_name = image.ensure(engine, CACHE)
        host = find(engine, chosen.name, image_name) or boot(engine, image_name, chosen.name)
    except StepFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{host.address} is up ({engine}, {image_name})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
