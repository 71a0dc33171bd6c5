"""The CUDA toolkit: whole, of the wanted release, and never with a driver."""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.cuda import CudaToolkit, FoundToolkit, ToolkitState
from operations.answers import ask
from operations.apt import DRIVER_PACKAGES, install, refresh, reinstall
from operations.steps import Refusal, Step, carry_out, refuse

GIB = 1024**3


# What makes a toolkit whole. torch's headers include the last three, from packages of their own:
# an image with a compiler alone would fail an hour into the build. [source, torch 2.13]
FILES = (
    "bin/ptxas",
    "include/cuda_runtime.h",
    "include/cublas_v2.h",
    "include/cusparse.h",
    "include/cusolverDn.h",
)


@dataclass(frozen=True)
class Toolkit:
    """One release of the toolkit, at its own path: /usr/local/cuda is a link that others move.

    `files`, relative to `home`, make it whole; `needs_gib` must be free before an installation.
    """

    package: str  # cuda-toolkit-13-2
    files: Sequence[str] = FILES
    needs_gib: float = 10

    def __post_init__(self) -> None:
        if not re.fullmatch(r"cuda-toolkit-\d+-\d+", self.package):
            raise ValueError(
                f"the CUDA toolkit package must be named as in cuda-toolkit-13-2, found "
                f"{self.package!r}: others (cuda, cuda-drivers) bring a driver over the image's"
            )

    @property
    def release(self) -> str:
        return ".".join(self.package.split("-")[-2:])

    @property
    def home(self) -> str:
        return f"/usr/local/cuda-{self.release}"


def is_whole(found: FoundToolkit, toolkit: Toolkit) -> bool:
    """Say whether the toolkit is there, whoever put it there."""
    return found["nvcc"] == toolkit.release and not found["missing"]


def plan(state: ToolkitState, toolkit: Toolkit) -> list[Step | Refusal]:
    """Return the steps that bring a whole toolkit about; none where one is there."""
    if is_whole(state["toolkit"], toolkit):
        return []
    reason = _toolkit_fault(state, toolkit)
    touched = sorted(state["touches"] or ())
    drivers = [name for name in touched if re.fullmatch(DRIVER_PACKAGES, name)]
    if drivers:
        return [
            Refusal(
                f"{reason}, and installing {toolkit.package} would touch the driver: "
                f"{', '.join(drivers)}. Look with `apt-get --simulate install {toolkit.package}`."
            )
        ]
    free = state["free"] / GIB
    if free < toolkit.needs_gib:
        return [
            Refusal(
                f"{reason}, and {free:.1f} GiB are free below /usr/local, wanted "
                f"{toolkit.needs_gib}. Grow the volume, or make room."
            )
        ]
    index = refresh(f"the package index is read anew ({reason})")
    return [index, _installation(state, toolkit), _check(toolkit)]


def _installation(state: ToolkitState, toolkit: Toolkit) -> Step:
    """The package is a list of others: where files are lost, those that own them come again."""
    if not state["toolkit"]["installed"]:
        return install(f"{toolkit.package} is not installed", [toolkit.package])
    again = sorted({toolkit.package, *state["toolkit"]["owners"]})
    return reinstall(f"unpacked again: {', '.join(again)}", again)


def _toolkit_fault(state: ToolkitState, toolkit: Toolkit) -> str:
    found = state["toolkit"]
    if found["nvcc"] is None:
        return f"{toolkit.home}/bin/nvcc does not run"
    if found["nvcc"] != toolkit.release:
        return f"{toolkit.home}/bin/nvcc is {found['nvcc']}, wanted {toolkit.release}"
    return f"missing: {', '.join(found['missing'])}"


def _check(toolkit: Toolkit) -> Step:
    nvcc = f"{toolkit.home}/bin/nvcc"
    message = f"{toolkit.package} was installed, but {nvcc} is not release {toolkit.release}."
    command = StringCommand(
        *(QuoteString(nvcc), "--version", "|", "grep", "-F"),
        *(QuoteString(f"release {toolkit.release},"), "||", "{", refuse(message), ";", "}"),
    )
    return Step(f"{nvcc} must be release {toolkit.release}", command)


@operation()
def present(toolkit: Toolkit) -> Generator[PyinfraCommand, None, None]:
    """Have the toolkit, whole and of the wanted release, without touching the driver.

    A toolkit that an image carries already is left as it is.
    """
    state = ask(
        CudaToolkit,
        package=toolkit.package,
        release=toolkit.release,
        home=toolkit.home,
        files=toolkit.files,
    )
    yield from carry_out(plan(state, toolkit), settled=f"nvcc {toolkit.release} in {toolkit.home}")
