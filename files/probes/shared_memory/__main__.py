"""python -B -m shared_memory TREE: one JSON object about a vLLM source tree's attention kernels.

Needs torch and triton, no GPU; about ten seconds. Writes nothing outside a temporary folder.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Compile the launches, or run them with --numerics, and print what came out."""
    parser = argparse.ArgumentParser(prog="shared_memory", description=__doc__)
    parser.add_argument("tree", type=Path, help="root of a vLLM source tree")
    parser.add_argument("--capability", default="7.5", help="compute capability to compile for")
    parser.add_argument(
        "--limit", type=int, default=65536, help="bytes a block may take; 7.5 allows 65536"
    )
    parser.add_argument(
        "--numerics", choices=("cpu", "cuda"), help="run and compare: interpreted, or on the GPU"
    )
    options = parser.parse_args()
    if options.numerics == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # it would tell two equal kernels apart
        json.dump(report(options), sys.stdout)
        print()


def report(options: argparse.Namespace) -> dict[str, object]:
    """Return the JSON object. Triton reads its environment when it is imported, so it is here."""
    import torch
    import triton

    from . import launches, source

    capability = source.Capability(*map(int, options.capability.split(".")))
    module = source.load(options.tree, capability)
    found = {
        "torch": torch.__version__,
        "triton": triton.__version__,
        "capability": options.capability,
    }
    if options.numerics:
        from .numerics import compare

        compared = [compare(module, launch, options.numerics) for launch in launches.gemma4()]
        return {**found, "device": options.numerics, "compared": compared}
    from .compiled import measure

    kernels = [
        kernel for launch in launches.gemma4() for kernel in measure(module, launch, capability)
    ]
    # Triton refuses only what exceeds the limit: 65,536 of 65,536 bytes run.
    over = [kernel for kernel in kernels if kernel["shared"] > options.limit]
    return {**found, "limit": options.limit, "kernels": kernels, "over": over}


if __name__ == "__main__":
    main()
