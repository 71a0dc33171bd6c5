"""Packages of the distribution: there, whole, and never upgraded on the way."""

from collections.abc import Collection, Generator, Sequence

from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.apt import Packages, PackageState
from operations.answers import ask
from operations.programs import program
from operations.steps import Refusal, Step, carry_out

# The image's driver belongs to its kernel module. A package that brings another user-space half
# gives "Driver/library version mismatch" after the next load. Container tools are not driver.
DRIVER_PACKAGES = (
    r"(?:cuda-drivers|nvidia-(?:driver|open|dkms|kernel|headless|utils|compute|firmware|modprobe"
    r"|persistenced|settings|fabricmanager|imex)|libnvidia-(?!container)|libcuda1"
    r"|linux-(?:modules|objects|signatures)-nvidia|xserver-xorg-video-nvidia).*"
)
# Acquire: a dead regional mirror otherwise hangs a run for minutes. needrestart, prompts and the
# locks of apt's lists are seen to by files/actions/apt_run.py.
APT_GET = (
    "apt-get",
    "-o=DPkg::Lock::Timeout=600",
    "-o=Acquire::Retries=3",
    "-o=Acquire::http::Timeout=30",
    "-o=Acquire::https::Timeout=30",
)
INSTALL = (
    *APT_GET,
    "install",
    "--yes",
    "--no-install-recommends",
    "--no-remove",
    "-o=APT::Keep-Downloaded-Packages=false",  # the toolkit's archives alone are 4 GB
    "-o=Dpkg::Options::=--force-confdef",
    "-o=Dpkg::Options::=--force-confold",
)


def plan(state: PackageState, names: Collection[str]) -> list[Step | Refusal]:
    """Return the steps that mend dpkg and install what is missing of `names`."""
    missing = sorted(set(names) - set(state["installed"]))
    steps = mend(state)
    if missing:
        wanted = f"not installed: {', '.join(missing)}"
        steps += [refresh(f"the package index is read anew ({wanted})"), install(wanted, missing)]
    return steps


def mend(state: PackageState) -> list[Step | Refusal]:
    """Return the steps that finish what was interrupted or forced; apt refuses work before that."""
    steps: list[Step | Refusal] = []
    unfinished = sorted(set(state["unfinished"]) - set(state["damaged"]))
    if unfinished or state["journals"]:
        what = ", ".join(unfinished) or f"{len(state['journals'])} journal files remain"
        steps.append(Step(f"dpkg was interrupted: {what}", _configure(bool(state["unmet"]))))
    if state["damaged"]:
        steps.append(reinstall(f"half unpacked: {', '.join(state['damaged'])}", state["damaged"]))
    if state["unmet"]:
        what = f"unmet dependencies: {', '.join(state['unmet'])}"
        fix = apt_run((*INSTALL, "--fix-broken"), refuse=DRIVER_PACKAGES)
        steps += [refresh(f"the package index is read anew ({what})"), Step(what, fix)]
    return steps


def _configure(dependencies_are_unmet: bool) -> StringCommand:
    """What cannot be configured for want of a dependency is left to the step that brings it."""
    command = apt_run(("dpkg", "--configure", "--pending", "--force-confdef,confold"))
    return StringCommand(command, "||", ":") if dependencies_are_unmet else command


def refresh(reason: str) -> Step:
    """Return the step that reads the package index; a source that fails leaves its old index.

    Where a wanted package is then unknown, the installation names it.
    """
    command = (*APT_GET, "-o=APT::Update::Error-Mode=any", "update")
    tolerant = StringCommand(
        *(apt_run(command, attempts=3), "||"),
        *("echo", "'some package sources failed, see above: their old indexes are used'"),
    )
    return Step(reason, tolerant)


def install(reason: str, packages: Sequence[str]) -> Step:
    """Return the step that installs packages, unless that would touch the NVIDIA driver."""
    command = (*INSTALL, "--no-upgrade", "--", *packages)
    return Step(reason, apt_run(command, refuse=DRIVER_PACKAGES))


def reinstall(reason: str, packages: Sequence[str]) -> Step:
    """Return the step that unpacks packages once more, unless that would touch the driver."""
    command = (*INSTALL, "--reinstall", "--", *packages)
    return Step(reason, apt_run(command, refuse=DRIVER_PACKAGES))


def apt_run(
    command: Sequence[str], *, attempts: int = 1, refuse: str | None = None
) -> StringCommand:
    """Return the command run when apt's locks are free; see files/actions/apt_run.py."""
    guard = ("--refuse", refuse) if refuse is not None else ()
    return program("actions/apt_run.py", "--attempts", str(attempts), *guard, *command)


@operation()
def packages(names: Collection[str]) -> Generator[PyinfraCommand, None, None]:
    """Install what is missing; mend a dpkg that was interrupted; upgrade and remove nothing.

    + names: real package names, no virtual ones: dpkg would never report those as installed
    """
    state = ask(Packages, names=sorted(names))
    settled = f"{len(set(names))} packages are installed, dpkg has nothing left to do"
    yield from carry_out(plan(state, names), settled=settled)
