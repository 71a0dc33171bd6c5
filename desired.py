"""What each stage should bring about, derived from the settings. Nothing here looks at a host."""

from pathlib import Path

import versions
from operations.build import Build, Places
from operations.filesystem import Directory
from operations.model import Producer, downloaded, trained
from operations.preflight import Expected
from operations.source import Patch, Source
from settings import Settings

FILES = Path(__file__).resolve().parent / "files"

# Where things lie on a host.
ROOT = "/opt/vllm-g5g"
TREE = f"{ROOT}/src"
STATE = "/var/lib/vllm-g5g"
STAMP = f"{STATE}/build.json"
LOGS = "/var/log/vllm-g5g"
CONFIGURATION = "/etc/vllm-g5g"

# What the wheel of CPU kernels ships; it has no Rust server. [measured, 0.32.0 on x86-64]
_CPU_ARTIFACTS = ("_C.abi3.so", "fs_io_C.abi3.so")


def expected(settings: Settings) -> Expected:
    """Return what preflight holds a host against."""
    return Expected(
        device=settings.device,
        architectures=settings.architectures,
        cuda_arch=settings.cuda_arch,
        python=settings.python,
        torch_version=settings.torch_version,
        min_free_disk_gib=settings.min_free_disk_gib,
        min_memory_gib=settings.min_memory_gib,
    )


def directories() -> list[Directory]:
    """Return the directories that later stages write into."""
    return [
        *(Directory(path) for path in (ROOT, STATE, f"{STATE}/models", CONFIGURATION)),
        Directory(LOGS, mode="750"),
    ]


def source(settings: Settings) -> Source:
    """Return the vLLM source: tag and patches, by version, device and compute capability."""
    needed = versions.patches_for(settings.vllm_version, settings.device, settings.capability)
    return Source(
        repository=settings.vllm_repository,
        tag=settings.version.tag,
        torch_script=settings.version.use_existing_torch,
        patches=tuple(_read(patch) for patch in needed if patch.file not in settings.skip_patches),
    )


def requirements_lock(settings: Settings) -> Path:
    """Return the lock of everything that building and serving needs but torch."""
    nearest = settings.vllm_version
    return FILES / "locks" / f"{nearest}-{settings.device}.txt"


def build(settings: Settings) -> Build:
    """Return everything that goes into the build."""
    on_cpu = settings.device == "cpu"
    kernels = FILES / "locks" / f"{settings.vllm_version}-cpu-kernels.txt"
    return Build(
        # On a CPU vLLM looks for a distribution of its own name with cpu in its version. [source]
        version=settings.vllm_version + ("+cpu" if on_cpu else ""),
        source_digest=source(settings).digest(),
        environment=_cpu_environment() if on_cpu else _cuda_environment(settings),
        requirements_lock=requirements_lock(settings).read_text(),
        kernels_lock=kernels.read_text() if on_cpu else "",
        artifacts=_CPU_ARTIFACTS if on_cpu else ("_C*.so", *settings.version.rust_artifacts),
        jobs=settings.build_jobs,
    )


def build_places(settings: Settings) -> Places:
    """Return where the build reads and writes."""
    return Places(
        tree=TREE,
        python=settings.python,
        stamp=STAMP,
        work=f"{STATE}/build",
        log=f"{LOGS}/build.log",
    )


def checkpoint(settings: Settings) -> Producer:
    """Return what makes the checkpoint."""
    if settings.model_source == "tiny":
        return trained()
    endpoint = {"HF_ENDPOINT": settings.hf_endpoint} if settings.hf_endpoint else {}
    return downloaded(settings.model_source, settings.model_revision, None, endpoint)


def checkpoint_directory(settings: Settings) -> str:
    """Return where the checkpoint lies, by its name."""
    return f"{STATE}/models/{settings.model_source.replace('/', '--')}"


def _read(patch: versions.Patch) -> Patch:
    text = (FILES / "patches" / patch.file).read_text()
    return Patch(patch.file, text, f"{patch.first or 'every'} to {patch.last or 'newest'}")


def _cpu_environment() -> dict[str, str]:
    return {"VLLM_TARGET_DEVICE": "cpu", "VLLM_USE_PRECOMPILED": "1"}


def _cuda_environment(settings: Settings) -> dict[str, str]:
    assert settings.cuda_arch is not None
    return {"VLLM_TARGET_DEVICE": "cuda", "TORCH_CUDA_ARCH_LIST": settings.cuda_arch}
