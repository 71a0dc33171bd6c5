"""python -B -m shared_memory TREE: one JSON object about a vLLM source tree's attention kernels.

Needs torch and triton, no GPU; half a minute. Writes nothing but the record that it is asked for.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from .verdict import faults

REMEDY = (
    "It would die at its first request or answer nonsense. Rework turing-tile-clamp.patch for this "
    "version, or choose one that versions.py lists as measured."
)


def main() -> int:
    """Compile the launches, run them where asked to, print what came out; 1 where it is wrong."""
    options = parsed()
    if options.numerics == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # nothing is compiled then
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # it would tell two equal kernels apart
        found = report(options)
    print(json.dumps(found))
    if options.record is None:
        return 0
    if not found["faults"]:
        write(options.record, {**found, "digest": options.digest})
        return 0
    for fault in found["faults"]:
        print(f"{options.tree} with Triton {found['triton']}: {fault}.", file=sys.stderr)
    print(REMEDY, file=sys.stderr)
    return 1


def parsed() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(prog="shared_memory", description=__doc__)
    parser.add_argument("tree", type=Path, help="root of a vLLM source tree")
    parser.add_argument("--capability", default="7.5", help="compute capability to compile for")
    parser.add_argument(
        "--limit", type=int, default=65536, help="bytes a block may take; 7.5 allows 65536"
    )
    parser.add_argument(
        "--numerics", choices=("cpu", "cuda"), help="run and compare: interpreted, or on the GPU"
    )
    parser.add_argument("--record", type=Path, help="keep the result here; exit 1 where it is bad")
    parser.add_argument("--digest", default="", help="names what was checked, in the record")
    return parser.parse_args()


def report(options: argparse.Namespace) -> dict[str, Any]:
    """Return the JSON object. Triton reads its environment when it is imported, so it is here."""
    import torch
    import triton

    from . import compiled, launches, numerics, source

    capability = source.Capability(*map(int, options.capability.split(".")))
    module = source.load(options.tree, capability)
    every = list(launches.gemma4())
    kernels: list[compiled.Compiled] = []
    if options.numerics != "cpu":
        for launch in every:
            kernels += compiled.measure(module, launch, capability)
    compared = [
        numerics.compare(module, launch, options.numerics) for launch in every if options.numerics
    ]
    return {
        "torch": torch.__version__,
        "triton": triton.__version__,
        "capability": options.capability,
        "limit": options.limit,
        "kernels": kernels,
        "compared": compared,
        "faults": list(faults(kernels, compared, options.limit)),
    }


def write(path: Path, record: dict[str, Any]) -> None:
    """Write the record whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(record, indent=1) + "\n")
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
