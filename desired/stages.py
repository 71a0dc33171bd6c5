"""What each stage should bring about, derived from the settings. Nothing here looks at a host."""

import json

from desired import places
from desired.building import cuda_toolkit
from desired.server_unit import ServerUnit
from desired.serving import Server, exposure, needs_key, problems
from operations import smoke
from operations.filesystem import Directory
from operations.model import Producer, downloaded, trained
from operations.preflight import Expected
from operations.prewarm import Prewarm
from operations.readiness import Stopwatch
from operations.secret import TOKEN_PATH, TokenSource
from runtimes import RUNTIMES
from settings import Settings

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
    models = f"{places.STATE}/models"
    open_to_read = (places.ROOT, places.PROGRAMS, places.STATE, models, places.CONFIGURATION)
    return [*map(Directory, open_to_read), Directory(places.LOGS, mode="750")]


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
    return f"{places.STATE}/models/{settings.model_source.replace('/', '--')}"


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
        stamp=places.STAMP,
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
        record=places.PREWARM_RECORD,
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
        programs=places.PROGRAMS,
        record=places.READINESS_RECORD,
        wait=settings.ready_seconds,
        health=check.health,
        api_key_file=check.api_key_file,
    )


def served_files(settings: Settings) -> list[str]:
    """Return the files that only the host knows and that say what is served."""
    unit = service(settings)
    return [unit.stamp, unit.manifest]
