"""The NVIDIA driver stays the one that the image came with.

unattended-upgrades, which these images run, moves its libraries under the loaded kernel module,
and the next process that opens the GPU fails with "Driver/library version mismatch". [issue]
"""

from collections.abc import Generator, Mapping

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from facts.driver import DriverPackages
from operations.answers import ask
from operations.apt import DRIVER_PACKAGES, apt_run
from operations.steps import Refusal, Step, carry_out


def plan(held: Mapping[str, bool]) -> list[Step | Refusal]:
    """Return the step that holds each driver package that is not; holds of others stay."""
    loose = sorted(name for name, is_held in held.items() if not is_held)
    if not loose:
        return []
    return [Step(f"not held: {', '.join(loose)}", apt_run(("apt-mark", "hold", "--", *loose)))]


@operation()
def held() -> Generator[PyinfraCommand, None, None]:
    """Hold every installed package of the driver; to upgrade it, unhold by hand and reboot."""
    packages = ask(DriverPackages, pattern=DRIVER_PACKAGES)
    settled = f"{len(packages)} packages of the driver are installed, and held"
    yield from carry_out(plan(packages), settled=settled)
