"""Packages, memory, account and directories; then what compiles: CUDA and Rust."""

from desired import building, places, stages
from operations import account, apt, cuda_repository, cuda_toolkit, driver, filesystem, rust, swap
from settings import Settings


def prepare(settings: Settings) -> None:
    """Bring a host so far that vLLM can be built there."""
    toolkit = building.cuda_toolkit(settings)
    if toolkit:
        # Before any other use of apt: two keys for one repository stop all of it.
        cuda_repository.present(
            name="Ensure there is one apt source for NVIDIA's repository",
            repository=building.cuda_repository(settings),
            toolkit=toolkit,
        )
    apt.packages(name="Ensure the system packages are installed", names=stages.packages(settings))
    swap.present(
        name=f"Ensure {settings.swap_gib} GiB of swap where memory is short",
        path="/swapfile",
        size_gib=settings.swap_gib,
        below_gib=settings.swap_below_gib,
    )
    account.present(
        name=f"Ensure the account {settings.user} exists", user=settings.user, home=places.STATE
    )
    filesystem.present(name="Ensure the directories exist", entries=stages.directories())
    if toolkit:
        driver.held(name="Ensure the driver stays at the installed version")
        cuda_toolkit.present(name=f"Ensure CUDA {toolkit.release} is installed", toolkit=toolkit)
    if rustup := building.rustup(settings):
        rust.present(
            name=f"Ensure Rust {settings.version.rust_toolchain} is installed",
            home=places.RUST,
            toolchain=settings.version.rust_toolchain,
            rustup=rustup,
        )
