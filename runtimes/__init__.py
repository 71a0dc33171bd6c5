"""The servers that a host can serve with, each described once for the service and the benchmark.

A third runtime is a third module here and a line in RUNTIMES.
"""

from runtimes import transformers, vllm
from runtimes.runtime import Runtime

RUNTIMES = {runtime.name: runtime for runtime in (vllm.RUNTIME, transformers.RUNTIME)}

__all__ = ["RUNTIMES", "Runtime", "others"]


def others(runtime: Runtime) -> list[str]:
    """Return the units of every other runtime: one host has one port and one GPU to serve from."""
    return [other.unit for other in RUNTIMES.values() if other is not runtime]
