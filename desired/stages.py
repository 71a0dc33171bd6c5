"""What each stage should bring about, derived from the settings. Nothing here looks at a host."""

import json
from pathlib import Path, PurePosixPath

import versions
from desired.server_unit import ServerUnit
from desired.serving import Server, exposure, needs_key, problems
from operations import attention, programs, rust, smoke
from operations.build import AttentionProbe, Build, BuildCheck, Places
from operations.cuda_repository import Repository
from operations.cuda_toolkit import Toolkit
from operations.filesystem import Directory
from operations.model import Producer, downloaded, trained
from operations.preflight import Expected
from operations.prewarm import Prewarm
from operations.readiness import Stopwatch
from operations.rust import Rustup
from operations.secret import TOKEN_PATH, TokenSource
from operations.source import Patch, Source
from runtimes import RUNTIMES
from settings import Settings

FILES = Path(__file__).resolve().parent.parent / "files"

# Where things lie on a host.
ROOT = "/opt/vllm-g5g"
TREE = f"{ROOT}/src"
STATE = "/var/lib/vllm-g5g"
STAMP = f"{STATE}/build.json"
LOGS = "/var/log/vllm-g5g"
CONFIGURATION = "/etc/vllm-g5g"
RUST = f"{ROOT}/rust"
PROGRAMS = programs.PROGRAMS
SMOKE_RECORD = f"{STATE}/smoke.json"
ATTENTION_RECORD = f"{STATE}/attention.json"
READINESS_RECORD = f"{STATE}/readiness.json"
PREWARM_RECORD = f"{STATE}/prewarm.json"

# What the wheel of CPU kernels ships; it has no Rust server. [measured, 0.32.0 on x86-64]
_CPU_ARTIFACTS = ("_C.abi3.so", "fs_io_C.abi3.so")

# What a start imports most bytes of. nvidia and triton come with torch's builds for CUDA. [source]
_PREWARMED = ("torch", "triton", "nvidia", "vllm")


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
        problems=tuple(f"{fault}." for fault in problems(server(settings), settings.cuda_arch)),
    )


def packages(settings: Settings) -> tuple[str, ...]:
    """Return the system packages, with what this vLLM version alone needs."""
    if settings.device == "cuda" and settings.version.needs_protoc:
        return (*settings.packages, "protobuf-compiler")
    return settings.packages


def directories() -> list[Directory]:
    """Return the directories that later stages write into."""
    return [
        *(Directory(path) for path in (ROOT, PROGRAMS, STATE, f"{STATE}/models", CONFIGURATION)),
        Directory(LOGS, mode="750"),
    ]


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
        tree=TREE,
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
    kernels = FILES / "locks" / f"{settings.vllm_version}-cpu-kernels.txt"
    return Build(
        # On a CPU vLLM looks for a distribution of its own name with cpu in its version. [source]
        version=settings.vllm_version + ("+cpu" if on_cpu else ""),
        compiled_source=source(settings).compiled_digest(),
        python_source=source(settings).python_digest(),
        environment=_cpu_environment() if on_cpu else _cuda_environment(settings),
        requirements_lock=requirements_lock(settings).read_text(),
        build_tools=versions.BUILD_TOOLS,
        kernels_lock=kernels.read_text() if on_cpu else "",
        check=_check_on_cpu() if on_cpu else _check_on_gpu(settings),
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
    token = TOKEN_PATH if settings.hf_token_source != "none" else None
    return downloaded(settings.model_source, settings.model_revision, token, endpoint)


def token_source(settings: Settings) -> TokenSource | None:
    """Return where the host fetches the hub's token; None where it needs none."""
    if settings.hf_token_source == "none":
        return None
    return TokenSource(
        region=settings.hf_token_region,
        secret_id=settings.hf_token_secret,
        keep_last=settings.hf_token_keep_last,
    )


def checkpoint_directory(settings: Settings) -> str:
    """Return where the checkpoint lies, by its name."""
    return f"{STATE}/models/{settings.model_source.replace('/', '--')}"


def server(settings: Settings) -> Server:
    """Return the server as configured."""
    toolkit = cuda_toolkit(settings)
    return Server(
        python=settings.python,
        model=checkpoint_directory(settings),
        served_name=settings.served_name,
        address=settings.address,
        port=settings.port,
        dtype=settings.dtype,
        kv_cache_dtype=settings.kv_cache_dtype,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        gpus=settings.gpus,
        gpu_memory_utilization=settings.gpu_memory_utilization,
        drain_seconds=settings.drain_seconds,
        ready_seconds=settings.ready_seconds,
        arguments=settings.server_arguments,
        environment=settings.server_environment,
        path=(f"{toolkit.home}/bin",) if toolkit else (),
    )


def service(settings: Settings) -> ServerUnit:
    """Return the server and what its unit must know beyond it."""
    keyed = needs_key(settings.address, settings.api_key)
    return ServerUnit(
        server=server(settings),
        user=settings.user,
        stamp=STAMP,
        manifest=f"{checkpoint_directory(settings)}.manifest.json",
        question=settings.question,
        memory_max=settings.memory_max,
        api_key_generation=settings.api_key_generation if keyed else None,
        runtime=RUNTIMES[settings.runtime],
    )


def warnings(settings: Settings) -> list[str]:
    """Return what is allowed and deserves a word: a server that anybody may use."""
    open_server = exposure(server(settings), settings.api_key)
    return [open_server] if open_server else []


def smoke_check(settings: Settings) -> smoke.Check:
    """Return what the smoke check asks and demands."""
    runtime = RUNTIMES[settings.runtime]
    return smoke.Check(
        model=runtime.request_model(server(settings)),
        question=settings.question,
        expect=settings.expected_answer,
        torch_python=settings.python,
        url=server(settings).url,
        api_key_file=service(settings).api_key_file,
        device=settings.device,
        full_length=json.dumps(runtime.full_length),
        health=runtime.health,
        lengths=settings.smoke_lengths,
        least_gb_per_s=settings.least_read_gb_per_s,
        least_tokens_per_s=settings.least_tokens_per_s,
    )


def prewarm(settings: Settings) -> Prewarm | None:
    """Return what is read before the first start on a new volume; None where nothing is."""
    if not settings.prewarm:
        return None
    return Prewarm(
        server_unit=RUNTIMES[settings.runtime].unit,
        servers=tuple(runtime.unit for runtime in RUNTIMES.values()),
        python=settings.python,
        packages=_PREWARMED,
        checkpoint=checkpoint_directory(settings),
        record=PREWARM_RECORD,
        # Where it does not help, what is left must still do for a first start without it.
        limit=settings.ready_seconds // 3,
    )


def spot_drained(settings: Settings) -> str | None:
    """Return the unit that stops when EC2 takes the host back; None where nobody looks out."""
    return RUNTIMES[settings.runtime].unit if settings.watch_spot else None


def stopwatch(settings: Settings) -> Stopwatch:
    """Return what times each start of the server."""
    check, unit = smoke_check(settings), service(settings)
    return Stopwatch(
        server_unit=unit.runtime.unit,
        url=check.url,
        model=check.model,
        programs=PROGRAMS,
        record=READINESS_RECORD,
        wait=settings.ready_seconds,
        health=check.health,
        api_key_file=check.api_key_file,
    )


def served_files(settings: Settings) -> list[str]:
    """Return the files that only the host knows and that say what is served."""
    unit = service(settings)
    return [unit.stamp, unit.manifest]


def _read(patch: versions.Patch) -> Patch:
    text = (FILES / "patches" / patch.file).read_text()
    return Patch(patch.file, text, patch.releases, compiled=patch.half == "compiled")


def _check_on_cpu() -> BuildCheck:
    return BuildCheck(_CPU_ARTIFACTS, versions.EXTENSIONS["cpu"])


def _check_on_gpu(settings: Settings) -> BuildCheck:
    toolkit, attended = cuda_toolkit(settings), attention_check(settings)
    probe = f"{PROGRAMS}/{attention.PROBE.name}"
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
    folders = (PurePosixPath(settings.python).parent, f"{toolkit.home}/bin", f"{RUST}/cargo/bin")
    return {
        "VLLM_TARGET_DEVICE": "cuda",
        "TORCH_CUDA_ARCH_LIST": settings.cuda_arch,
        # Not /usr/local/cuda, a link that any other toolkit moves.
        "CUDA_HOME": toolkit.home,
        "NVCC_THREADS": "1",
        # Objects 2 to 32 times smaller at the same speed. [measured]
        "CMAKE_BUILD_TYPE": "Release",
        "LDFLAGS": "-Wl,--strip-debug",  # 119 MB of symbols in the core library alone [measured]
        "CCACHE_DIR": f"{STATE}/ccache",  # found on PATH by vLLM's cmake; kept across rebuilds
        # Without these the Rust parts are skipped in silence, or built for debugging. [source]
        "VLLM_REQUIRE_RUST_FRONTEND": "1",
        "SETUPTOOLS_RUST_CARGO_PROFILE": "release",
        "PATH": ":".join(map(str, (*folders, "/usr/local/bin", "/usr/bin", "/bin"))),
        **rust.environment(RUST),
    }
