"""What is built from what, and what with, derived from the settings."""

from pathlib import Path, PurePosixPath

import versions
from desired import places
from facts.script import FILES
from operations import attention, rust
from operations.build import AttentionProbe, Build, BuildCheck, Places
from operations.cuda_repository import Repository
from operations.cuda_toolkit import Toolkit
from operations.rust import Rustup
from operations.source import Patch, Source
from runtimes import RUNTIMES
from settings import Settings

# What the wheel of CPU kernels ships; it has no Rust server. [measured, 0.32.0 on x86-64]
_CPU_ARTIFACTS = ("_C.abi3.so", "fs_io_C.abi3.so")


def cuda_toolkit(settings: Settings) -> Toolkit | None:
    """Return the toolkit to have; None on a host without a GPU."""
    if settings.cuda_toolkit is None:
        return None
    return Toolkit(settings.cuda_toolkit, needs_gib=settings.cuda_needs_gib)


def cuda_repository(settings: Settings) -> Repository:
    """Return where the toolkit comes from."""
    return Repository(
        base_url=settings.cuda_repository,
        keyring_version=settings.cuda_keyring_version,
        keyring_sha256=settings.cuda_keyring_sha256,
        fingerprint=settings.cuda_key_fingerprint,
    )


def rustup(settings: Settings) -> Rustup | None:
    """Return the installer of Rust; None where nothing of Rust is compiled."""
    if settings.rustup_version is None:
        return None
    return Rustup(
        version=settings.rustup_version,
        sha256=settings.rustup_sha256,
        archive_url=settings.rustup_archive,
        dist_server=settings.rust_dist_server,
    )


def source(settings: Settings) -> Source:
    """Return the vLLM source: tag and patches, by version, device and compute capability."""
    needed = versions.patches_for(settings.vllm_version, settings.device, settings.capability)
    return Source(
        repository=settings.vllm_repository,
        tag=settings.version.tag,
        torch_script=settings.version.use_existing_torch,
        patches=tuple(_read(patch) for patch in needed if patch.file not in settings.skip_patches),
    )


def attention_check(settings: Settings) -> attention.Check | None:
    """Return what is asked of the attention kernels; None where shared memory is not scarce."""
    if settings.capability is None or settings.capability >= (8, 0):
        return None
    assert settings.cuda_arch is not None
    return attention.Check(
        tree=places.TREE,
        source=source(settings).digest(),
        python=settings.python,
        capability=settings.cuda_arch,
    )


def requirements_lock(settings: Settings) -> Path:
    """Return the lock of everything that building and serving needs but torch."""
    return FILES / "locks" / versions.lock_of(settings.vllm_version, settings.device)


def runtime_lock(settings: Settings) -> Path | None:
    """Return the lock of what the runtime needs beyond that, None for nothing."""
    lock = RUNTIMES[settings.runtime].lock
    return FILES / "locks" / lock if lock else None


def build(settings: Settings) -> Build:
    """Return everything that goes into the build."""
    on_cpu = settings.device == "cpu"
    kernels = versions.kernels_lock_of(settings.vllm_version) if on_cpu else None
    return Build(
        # On a CPU vLLM looks for a distribution of its own name with cpu in its version. [source]
        version=settings.vllm_version + ("+cpu" if on_cpu else ""),
        compiled_source=source(settings).compiled_digest(),
        python_source=source(settings).python_digest(),
        environment=_cpu_environment() if on_cpu else _cuda_environment(settings),
        requirements_lock=requirements_lock(settings).read_text(),
        build_tools=versions.BUILD_TOOLS,
        kernels_lock=(FILES / "locks" / kernels).read_text() if kernels else "",
        check=_check_on_cpu() if on_cpu else _check_on_gpu(settings),
        jobs=settings.build_jobs,
    )


def build_places(settings: Settings) -> Places:
    """Return where the build reads and writes."""
    return Places(
        tree=places.TREE,
        python=settings.python,
        stamp=places.STAMP,
        work=f"{places.STATE}/build",
        log=f"{places.LOGS}/build.log",
    )


def _read(patch: versions.Patch) -> Patch:
    text = (FILES / "patches" / patch.file).read_text()
    return Patch(patch.file, text, patch.releases, compiled=patch.half == "compiled")


def _check_on_cpu() -> BuildCheck:
    return BuildCheck(_CPU_ARTIFACTS, versions.EXTENSIONS["cpu"])


def _check_on_gpu(settings: Settings) -> BuildCheck:
    toolkit, attended = cuda_toolkit(settings), attention_check(settings)
    probe = f"{places.PROGRAMS}/{attention.PROBE.name}"
    assert settings.cuda_arch is not None
    assert toolkit is not None
    return BuildCheck(
        artifacts=("_C*.so", *settings.version.rust_artifacts),
        extensions=versions.EXTENSIONS["cuda"],
        gpu=True,
        target="sm_" + settings.cuda_arch.replace(".", ""),
        kernels=versions.KERNEL_LIBRARIES,
        cuobjdump=f"{toolkit.home}/bin/cuobjdump",
        attention=AttentionProbe(probe, attended.capability, attended.limit) if attended else None,
    )


def _cpu_environment() -> dict[str, str]:
    return {"VLLM_TARGET_DEVICE": "cpu", "VLLM_USE_PRECOMPILED": "1"}


def _cuda_environment(settings: Settings) -> dict[str, str]:
    """Return what the compilation is told; the capability overwrites what an image exports."""
    toolkit = cuda_toolkit(settings)
    assert settings.cuda_arch is not None
    assert toolkit is not None
    # The interpreter's own cmake and ninja, as the lock has them, stand before the system's.
    folders = (
        PurePosixPath(settings.python).parent,
        f"{toolkit.home}/bin",
        f"{places.RUST}/cargo/bin",
    )
    return {
        "VLLM_TARGET_DEVICE": "cuda",
        "TORCH_CUDA_ARCH_LIST": settings.cuda_arch,
        # Not /usr/local/cuda, a link that any other toolkit moves.
        "CUDA_HOME": toolkit.home,
        "NVCC_THREADS": "1",
        # Objects 2 to 32 times smaller at the same speed. [measured]
        "CMAKE_BUILD_TYPE": "Release",
        "LDFLAGS": "-Wl,--strip-debug",  # 119 MB of symbols in the core library alone [measured]
        # vLLM's cmake finds ccache on PATH; what it keeps outlives a rebuild.
        "CCACHE_DIR": f"{places.STATE}/ccache",
        # Without these the Rust parts are skipped in silence, or built for debugging. [source]
        "VLLM_REQUIRE_RUST_FRONTEND": "1",
        "SETUPTOOLS_RUST_CARGO_PROFILE": "release",
        "PATH": ":".join(map(str, (*folders, "/usr/local/bin", "/usr/bin", "/bin"))),
        **rust.environment(places.RUST),
    }
