"""What machine this is: enough to tell, before anything is changed, that it can never serve."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class Gpu(TypedDict):
    """One GPU as nvidia-smi tells it."""

    name: str
    compute_capability: str  # "7.5"
    memory_mib: int
    driver: str


class Torch(TypedDict):
    """The torch of the serving interpreter; `architectures` is empty in a CPU build."""

    version: str  # "2.12.0+cu132"
    architectures: list[str]  # ["sm_75", ...]


class Machine(TypedDict):
    architecture: str  # as `uname -m`: "aarch64"
    is_root: bool
    init: str  # name of process 1
    system_state: str  # as `systemctl is-system-running`: "running"; "" without systemd
    cloud_init: str  # "done", "running", "error", ...; "absent" where it is not installed
    memory_bytes: int
    cores: int
    free_bytes: dict[str, int]  # by path, for an ordinary user, of the file system that holds it
    built: bool  # whether a build's stamp is there, so that its room is taken already
    epoch: float  # seconds, the host's clock
    python_version: str  # of the serving interpreter: "3.12.3"; "" where it cannot be run
    torch: Torch | None
    gpus: list[Gpu]
    gpu_error: str  # why nvidia-smi gave no GPU


class MachineFacts(FactBase[Machine | None]):
    """The machine under us, in one round trip. `import_torch` costs seconds: it asks torch itself
    for the architectures that it was compiled for."""

    def command(self, python: str, import_torch: bool, stamp: str) -> StringCommand:
        return program("machine.py", python, "import" if import_torch else "metadata", stamp)

    def process(self, output: list[str]) -> Machine:
        machine: Machine = answer(output)
        return machine
