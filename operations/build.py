"""vLLM built from its patched tree and installed, once for all that goes into it."""

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from facts.build import FoundBuild, Inputs, VllmBuild
from facts.script import FILES
from failures.known import BUILDING, GENERAL
from operations.answers import ask
from operations.jobs import Job
from operations.requirements import pins
from operations.steps import Refusal, Step, carry_out

UNIT = "vllm-build.service"
PROGRAMS = FILES / "build"
GIB = 1024**3
# Left to the rest of the host, the SSM agent above all, while compilers run.
RESERVED_MEMORY = 2 * GIB
# A compiler job without FlashAttention 3 peaks at about 1.1 GiB, and one unit at 3.1 GiB by itself:
# (GiB - 4) / 1.1 jobs. [measured on x86-64 with nvcc 13.0]
MEMORY_BASE, MEMORY_PER_JOB = 4.0, 1.1  # GiB


@dataclass(frozen=True)
class AttentionProbe:
    """The probe of files/probes/shared_memory on the host, and what a kernel may take."""

    folder: str
    capability: str  # "7.5"
    limit: int  # bytes of shared memory for a block


@dataclass(frozen=True)
class BuildCheck:
    """What a build must show before it is stamped; files/build/check_build.py asks for it.

    + artifacts: file patterns in the installed package, each of which must match
    + extensions: compiled modules that must load
    + gpu: whether there is one to compute on
    + target: name of the code that the kernels must hold, "sm_75"; None on a CPU
    + kernels: file patterns of the libraries that hold it
    + cuobjdump: the tool that lists it; where the toolkit lacks it, that is said
    + attention: None where shared memory is not scarce
    """

    artifacts: tuple[str, ...]
    extensions: tuple[str, ...]
    gpu: bool = False
    target: str | None = None
    kernels: tuple[str, ...] = ()
    cuobjdump: str = ""
    attention: AttentionProbe | None = None


@dataclass(frozen=True)
class Build:
    """Everything that goes into a build but what the host itself brings (torch, Python)."""

    version: str  # what the installed vLLM must call itself
    compiled_source: str  # digest of the tree's tag and the patches of what is compiled
    python_source: str  # digest of the other patches
    environment: Mapping[str, str]
    requirements_lock: str  # text: built and served with these
    build_tools: frozenset[str]  # the distributions of that lock that the compilation uses
    kernels_lock: str  # text: a wheel that ships compiled kernels; "" to compile them
    check: BuildCheck
    jobs: int | None  # compiler jobs; None: by the host's memory and cores

    def inputs(self, torch: str, python: str) -> Inputs:
        """Return what the stamp records, in two halves.

        A difference in a compiled value is a reason to compile; one in a Python value is a reason
        to install the same compiled code with other Python, which takes seconds.
        """
        tools = pins(self.requirements_lock, self.build_tools)
        compiled = {
            "version": self.version,
            "source": self.compiled_source,
            "environment": _digest(json.dumps(dict(self.environment), sort_keys=True)),
            "build tools": _digest(json.dumps(tools)),
            "kernels": _digest(self.kernels_lock),
            "torch": torch,
            "python": python,
        }
        served = {
            "patches": self.python_source,
            "requirements": _digest(self.requirements_lock),
        }
        return {"compiled": compiled, "python": served}


@dataclass(frozen=True)
class Places:
    """Absolute paths on the host."""

    tree: str
    python: str
    stamp: str
    work: str
    log: str


def jobs_for(cores: int, memory_bytes: int) -> int:
    """Return how many compiler jobs fit the memory, never more than the cores and at least one."""
    return max(1, min(cores, int((memory_bytes / GIB - MEMORY_BASE) / MEMORY_PER_JOB)))


def plan(found: FoundBuild | None, build: Build, places: Places) -> list[Step | Refusal]:
    """Return the one step that builds, attaches to the running build, or installs again."""
    if found is None:
        return [Refusal(f"found no {places.python}, wanted the interpreter with torch: set python")]
    faults = _faults(found, build)
    if not faults:
        return []
    command = _job(found, places).command(_specification(found, build, places))
    return [Step(f"vLLM {build.version} {'; '.join(faults)}", command)]


@operation()
def installed(build: Build, places: Places) -> Generator[PyinfraCommand, None, None]:
    """Build and install where the stamp tells of other inputs, or what it tells of is damaged.

    Where only the installed files are damaged and the wheel is still whole, that is installed
    again, which takes seconds.
    """
    found = ask(VllmBuild, python=places.python, stamp=places.stamp, unit=UNIT)
    yield from carry_out(plan(found, build, places), settled=f"vLLM {build.version} is built")


def _faults(found: FoundBuild, build: Build) -> list[str]:
    if found["running"]:
        return ["is being built, waiting for it"]
    stamp = found["stamp"]
    if stamp is None:
        return ["has not been built"]
    faults = _changes(build.inputs(found["torch"], found["python"]), stamp["inputs"])
    if found["installed"] != stamp["outputs"]["version"]:
        faults.append(f"is installed as {found['installed'] or 'nothing'}")
    if found["damaged_count"]:
        damaged = ", ".join(found["damaged"])
        faults.append(f"has {found['damaged_count']} damaged files: {damaged}")
    return faults


def _changes(wanted: Inputs, had: Mapping[str, object]) -> list[str]:
    """Return what differs; a stamp of an older layout differs in everything."""
    compiled = _differences(wanted["compiled"], had.get("compiled"))
    if compiled:
        return [f"was compiled with {difference}" for difference in compiled]
    served = _differences(wanted["python"], had.get("python"))
    return [f"has {difference}; nothing is compiled again" for difference in served]


def _differences(wanted: Mapping[str, str], had: object) -> list[str]:
    known = had if isinstance(had, dict) else {}
    return [
        f"{name} {_short(known.get(name))}, wanted {_short(value)}"
        for name, value in wanted.items()
        if known.get(name) != value
    ]


def _job(found: FoundBuild, places: Places) -> Job:
    bound = max(RESERVED_MEMORY, found["memory_bytes"] - RESERVED_MEMORY)
    return Job(
        unit=UNIT,
        description="the build of vLLM",
        python=places.python,
        program=PROGRAMS / "build_vllm.py",
        beside=tuple(sorted(path for path in PROGRAMS.iterdir() if path.is_file())),
        work=places.work,
        log=places.log,
        failures=(*BUILDING, *GENERAL),
        # Compilers that outgrow this are killed instead of the SSM agent (amazon-ssm-agent #204).
        properties={"MemoryMax": str(bound)},
    )


def _specification(found: FoundBuild, build: Build, places: Places) -> dict[str, object]:
    jobs = build.jobs or jobs_for(found["cores"], found["memory_bytes"])
    return {
        "version": build.version,
        "inputs": build.inputs(found["torch"], found["python"]),
        "environment": {
            **build.environment,
            "MAX_JOBS": str(jobs),
            "VLLM_VERSION_OVERRIDE": build.version,
        },
        "kernels_lock": build.kernels_lock,
        "check": asdict(build.check),
        "tree": places.tree,
        "python": places.python,
        "stamp": places.stamp,
        "work": places.work,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _short(value: str | None) -> str:
    return "nothing" if value is None else value[:12]
