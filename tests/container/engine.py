"""Which container engine this machine has, and which of its runtimes can boot systemd."""

import resource
import shutil
import subprocess
from dataclasses import dataclass, replace

from tests.container.console import StepFailed

# Tried in this order. On a machine with cgroup v1 crun refuses ("cgroups in hybrid mode not
# supported") where runc boots, so a runtime is chosen by trying it, not by its presence. [measured]
RUNTIMES = ("runc", "crun")

# Open files and processes in the container: ample for one vLLM, below most machines' own limits.
LIMITS = (("nofile", resource.RLIMIT_NOFILE, 65536), ("nproc", resource.RLIMIT_NPROC, 4096))

INSTALL_COMMAND = "apt-get install --yes podman runc mmdebstrap git gnupg"


@dataclass(frozen=True)
class Engine:
    """A program that speaks Docker's command line: `docker` or `podman`, and its runtime."""

    program: str
    runtime: str | None = None

    def argv(self, *arguments: str) -> list[str]:
        """Return the full command line for one engine command."""
        chosen = ("--runtime", self.runtime) if self.program == "podman" and self.runtime else ()
        return [self.program, *chosen, *arguments]

    def run(self, *arguments: str) -> str:
        """Run one engine command and return what it printed.

        Raises:
            StepFailed: it exited non-zero; the message carries its standard error.
        """
        done = self.attempt(*arguments)
        if done.returncode:
            command = " ".join(self.argv(*arguments[:4]))
            raise StepFailed(f"`{command} ...` exited {done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip()

    def attempt(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run one engine command whatever comes of it."""
        return subprocess.run(
            self.argv(*arguments), capture_output=True, text=True, stdin=subprocess.DEVNULL
        )

    def __str__(self) -> str:
        return f"{self.program} with {self.runtime}" if self.runtime else self.program


def find() -> Engine:
    """Return Docker where its daemon answers, else podman.

    Raises:
        StepFailed: neither is there; the message has the command to type.
    """
    for engine in (Engine("docker"), Engine("podman")):
        if shutil.which(engine.program) and engine.attempt("info").returncode == 0:
            return engine
    raise StepFailed(
        "cannot start a container: no Docker daemon answers and podman does not work here. "
        f"Install podman as root: {INSTALL_COMMAND}"
    )


def choose_runtime(engine: Engine, image: str) -> Engine:
    """Return the engine with the first runtime that starts a container from `image`.

    Raises:
        StepFailed: none does; the message has what each of them said.
    """
    if engine.program != "podman":
        return engine
    said = []
    for runtime in RUNTIMES:
        candidate = replace(engine, runtime=runtime)
        done = candidate.attempt("run", "--rm", *boot_flags(candidate), image, "/bin/true")
        if done.returncode == 0:
            return candidate
        said.append(f"{runtime}: {done.stderr.strip()}")
    raise StepFailed(
        "no runtime starts a container that can boot systemd. "
        f"Install runc as root (apt-get install --yes runc). Tried: {'; '.join(said)}"
    )


def boot_flags(engine: Engine) -> list[str]:
    """Return the flags with which systemd boots as PID 1 and vLLM's engine runs.

    vLLM wants 160 MiB of /dev/shm, the default has 62 free [measured]. Limits above this
    process's own hard ones are refused, and some machines refuse their own number of processes
    too where they accept 4,096 [measured].
    """
    flags = ["--privileged", "--network", "host", "--shm-size", "2g"]
    for name, kind, most in LIMITS:
        limit = _lower(most, resource.getrlimit(kind)[1])
        flags += ["--ulimit", f"{name}={limit}:{limit}"]
    if engine.program == "podman":
        return [*flags, "--systemd", "always"]
    cgroups = ["--cgroupns", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:rw"]
    return [*flags, *cgroups, "--tmpfs", "/run", "--tmpfs", "/run/lock"]  # untested: no daemon here


def _lower(most: int, hard: int) -> int:
    return most if hard == resource.RLIM_INFINITY else min(most, hard)
