"""Refuse a host that can never serve, before anything on it is changed, in the dry run too."""

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.machine import Machine, MachineFacts
from operations.answers import ask
from operations.steps import Refusal, Step, carry_out

GIB = 1024**3
# A request that AWS is asked to trust may be five minutes old; a clock further off fails it.
CLOCK_TOLERANCE = 300.0  # seconds
# What a host needs free when everything is built: logs, journals, a compiled cache.
FREE_WHEN_BUILT = 1.0  # GiB


@dataclass(frozen=True)
class Expected:
    """What a host must be; each value is a knob of the same name."""

    device: str
    architectures: tuple[str, ...]
    cuda_arch: str | None
    python: str
    torch_version: str
    min_free_disk_gib: float
    min_memory_gib: float
    problems: tuple[str, ...] = ()  # of the knobs with that hardware, known without a look at it


def plan(found: Machine | None, expected: Expected, now: float) -> list[Step | Refusal]:
    """Return one refusal with every fault found; `now` is this machine's clock, epoch seconds."""
    if found is None:
        return [Refusal("cannot tell what machine this is: python3 did not run. Install python3.")]
    faults = [*expected.problems, *_system_faults(found, now), *_capacity_faults(found, expected)]
    faults += [*_torch_faults(found, expected), *_gpu_faults(found, expected)]
    if faults:
        return [Refusal("this host cannot serve. " + " ".join(faults))]
    if found["cloud_init"] == "running":
        wait = "cloud-init status --wait >/dev/null; [ $? -ne 1 ]"
        return [Step("cloud-init is still running, waiting for it", StringCommand(wait))]
    return []


@operation()
def host_can_serve(expected: Expected, stamp: str) -> Generator[PyinfraCommand, None, None]:
    """Check architecture, GPU, torch, disk, memory, clock and systemd against what is expected."""
    on_gpu = expected.device == "cuda"
    found = ask(MachineFacts, python=expected.python, import_torch=on_gpu, stamp=stamp)
    yield from carry_out(plan(found, expected, time.time()), settled="the host can serve")


def _system_faults(found: Machine, now: float) -> Iterator[str]:
    if not found["is_root"]:
        yield "Found an ordinary user, wanted root: connect as root or set _sudo = True."
    if found["init"] != "systemd":
        yield f"Found {found['init']} as process 1, wanted systemd: use an image that boots it."
    if found["cloud_init"] == "error":
        yield "Found cloud-init in error, wanted done: see `cloud-init status --long` there."
    if abs(skew := found["epoch"] - now) > CLOCK_TOLERANCE:
        yield (
            f"Found its clock {skew:+.0f} s from ours, wanted within {CLOCK_TOLERANCE:.0f} s: "
            "start chrony or systemd-timesyncd there."
        )


def _capacity_faults(found: Machine, expected: Expected) -> Iterator[str]:
    if found["architecture"] not in expected.architectures:
        yield (
            f"Found architecture {found['architecture']}, wanted "
            f"{' or '.join(expected.architectures)}: use the group of its own kind."
        )
    if found["memory_bytes"] < expected.min_memory_gib * GIB:
        yield (
            f"Found {found['memory_bytes'] / GIB:.1f} GiB of memory, wanted at least "
            f"{expected.min_memory_gib:g}: use a larger size."
        )
    for path, free in found["free_bytes"].items():
        build_room = path != "/tmp" and not found["built"]
        wanted = expected.min_free_disk_gib if build_room else FREE_WHEN_BUILT
        if free < wanted * GIB:
            yield (
                f"Found {free / GIB:.1f} GiB free under {path}, wanted at least {wanted:g}: "
                "free some, or grow the volume."
            )


def _torch_faults(found: Machine, expected: Expected) -> Iterator[str]:
    torch = found["torch"]
    if torch is None:
        what = "no torch there" if found["python_version"] else "no such interpreter"
        yield (
            f"Found {what}, wanted torch {expected.torch_version} in {expected.python}: "
            "use an image that carries it, or set python."
        )
    elif torch["version"].split("+")[0] != expected.torch_version:
        yield (
            f"Found torch {torch['version']} in {expected.python}, wanted "
            f"{expected.torch_version}: put the image's torch back, or set torch_version."
        )
    elif expected.cuda_arch and _sm(expected.cuda_arch) not in torch["architectures"]:
        yield (
            f"Found torch for {' '.join(torch['architectures']) or 'no GPU'}, wanted "
            f"{_sm(expected.cuda_arch)} among them: use an image whose torch has it."
        )


def _gpu_faults(found: Machine, expected: Expected) -> Iterator[str]:
    if expected.device != "cuda":
        return
    capabilities = {gpu["compute_capability"] for gpu in found["gpus"]}
    if not capabilities:
        yield (
            f"Found no NVIDIA GPU ({found['gpu_error']}), wanted compute capability "
            f"{expected.cuda_arch}: use an instance and an image that have one, with its driver."
        )
    elif capabilities != {expected.cuda_arch}:
        yield (
            f"Found compute capability {', '.join(sorted(capabilities))}, wanted "
            f"{expected.cuda_arch}: set cuda_arch, or use the group of that hardware."
        )


def _sm(cuda_arch: str) -> str:
    return "sm_" + cuda_arch.replace(".", "")
