"""What `bench.py` asks of a host and says of it, derived from the settings."""

import hashlib
import json
from pathlib import Path

from desired import places, server_unit, stages
from files.bench.plan import Method
from operations.bench import Benchmark, Places
from runtimes import RUNTIMES
from settings import Settings

RUNS = f"{places.STATE}/bench"


def bench_places(settings: Settings) -> Places:
    """Return where programs, runs and reports lie; reports are on this machine."""
    return Places(programs=places.PROGRAMS, runs=RUNS, reports=Path(settings.bench_reports))


def method(settings: Settings) -> Method:
    return Method(
        contexts=settings.bench_contexts,
        outputs=settings.bench_outputs,
        concurrencies=settings.bench_concurrencies,
        repeats=settings.bench_repeats,
        nonce=settings.bench_nonce,
    )


def benchmark(settings: Settings, host_name: str) -> Benchmark:
    """Return the benchmark of a host, for the server that its settings ask for."""
    runtime, server = RUNTIMES[settings.runtime], stages.server(settings)
    return Benchmark(
        url=server.url,
        model=runtime.request_model(server),
        method=method(settings),
        api_key_file=stages.service(settings).api_key_file,
        full_length=runtime.full_length,
        metrics=runtime.metrics,
        prefix_counters=runtime.prefix_counters,
        attach={
            "smoke": places.SMOKE_RECORD,
            "build": places.STAMP,
            "readiness": places.READINESS_RECORD,
        },
        about=about(settings, host_name) | {"runtime": runtime.name},
    )


def about(settings: Settings, host_name: str) -> dict[str, object]:
    """Return what the report says of the host that the host does not know itself."""
    return {
        "host": host_name,
        "profile": settings.device,
        "software": {
            "vllm": settings.vllm_version,
            "torch": settings.torch_version,
            "checkpoint": f"{settings.model_source}@{settings.model_revision}",
            "service": service_digest(settings),
        },
        "streamed_bytes_per_token": settings.streamed_bytes_per_token,
        "streamed_bytes_evidence": "field",
    }


def service_digest(settings: Settings) -> str:
    """Return what stands for the unit and its environment: with other flags it is another run."""
    texts = server_unit.texts(stages.service(settings))
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
