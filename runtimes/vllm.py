"""vLLM, built from source: what this product is for."""

from desired import serving
from runtimes.runtime import Runtime

RUNTIME = Runtime(
    name="vllm",
    title="vLLM",
    documentation="https://docs.vllm.ai/",
    unit="vllm.service",
    distribution="vllm",
    argv=serving.argv,
    environment=serving.environment,
    request_model=lambda server: server.served_name,
    full_length={"ignore_eos": True},
    metrics="/metrics",
    prefix_counters=("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"),
)
