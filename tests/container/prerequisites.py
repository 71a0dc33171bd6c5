"""A stand-in of its own that is converged with the stages host, cuda and rust alone."""

from dataclasses import dataclass

from tests.container import machine, pyinfra_run
from tests.container.pyinfra_run import Run
from tests.container.stand_in import StandIn

DEPLOY = "tests/container/deploys/prerequisites.py"
# On a folder of this machine: the kernel takes no swap file on a container's overlay.
SWAP_FILE = f"{machine.PIP_CACHE}/vllm-g5g-test-swap"
DATA = {
    "packages": ["g++", "libnuma1"],
    "rust_toolchain": "1.95",
    "swap_file": SWAP_FILE,
    "swap_below_gib": 1024,
}


@dataclass(frozen=True)
class Prerequisites(StandIn):
    """One container, and the data that it is converged with."""

    def converge(self, *flags: str, **knobs: object) -> Run:
        """Run the prerequisites' deploy on it; `knobs` override its data for this run."""
        data = {**self.data, **DATA, **knobs}
        return pyinfra_run.run(self.host, data, *flags, deploy=DEPLOY)

    def give_back(self) -> None:
        """Take back what it has, or one that was killed had, of this machine's kernel and disk."""
        self.attempt(f"swapoff {SWAP_FILE}; rm -f {SWAP_FILE}")
