"""What is wrong with what the probe found, in words. Needs neither torch nor triton."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# Relative norm. float16 against float32 gives 2.5e-4 [measured]; a wrong tile gives far more.
TOLERANCE = 1e-3


def faults(
    kernels: Iterable[Mapping[str, Any]], compared: Iterable[Mapping[str, Any]], limit: int
) -> Iterator[str]:
    """Yield each launch that takes more than `limit` bytes a block or computes something else.

    Exactly `limit` fits: Triton refuses only what exceeds it, and the clamped worst case is equal.
    """
    for kernel in kernels:
        if kernel["shared"] > limit:
            yield f"{launch(kernel)} takes {kernel['shared']:,} bytes of {limit:,} a block"
    for comparison in compared:
        if not comparison["relative_error"] <= TOLERANCE:  # NaN compares false
            error = f"{comparison['relative_error']:.1e}"
            yield f"{launch(comparison)} is {error} from plain torch, over {TOLERANCE:.0e}"


def launch(found: Mapping[str, Any]) -> str:
    """Return what people call a launch."""
    return f"head {found['head']} {found['phase']}"
