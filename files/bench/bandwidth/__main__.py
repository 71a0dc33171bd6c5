"""Measure memory bandwidth and print one JSON object.

Exit status: 0 measured and right; 1 could not measure, or a result was wrong (the JSON says which).
"""

import argparse
import importlib
import json
import sys
from typing import Any

from .buffers import CACHE_MULTIPLE, CannotMeasure, buffer_bytes
from .conditions import conditions
from .device import describe_cpu, describe_cuda, peak_gb_per_s
from .kernels import Buffers

SCHEMA = "vllm-g5g/bandwidth/1"
GIB = 1 << 30


def probe(torch: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Run every kernel and return the report."""
    asked = options.device
    device = torch.device(("cuda" if torch.cuda.is_available() else "cpu", asked)[asked != "auto"])
    cuda = device.type == "cuda"
    about = describe_cuda(torch, device) if cuda else describe_cpu()
    cache, free = about["cache_bytes"], about["free_bytes"]
    ceiling = 4 * GIB if cuda else max(GIB // 4, 2 * CACHE_MULTIPLE * cache)
    buffers = Buffers(torch, device, buffer_bytes(options.bytes, cache, free, ceiling))
    figures = {k.name: buffers.measure(k, options.warmup, options.runs) for k in buffers.kernels()}
    reads = [f for name, f in figures.items() if name.startswith("read_")]
    figures["read"] = max(reads, key=lambda f: f["median"])
    return {
        "schema": SCHEMA,
        "device": about,
        "software": {"torch": torch.__version__, "cuda": torch.version.cuda},
        "method": {"buffer_bytes": buffers.size, "runs": options.runs, "warmup": options.warmup},
        **rates(figures, peak_gb_per_s(about["memory_clock_khz"], about["bus_width_bits"])),
        "plain_copy_gb_per_s": buffers.plain_copy(),
        "conditions": conditions(about["smi_id"], buffers.plain_copy) if cuda else {},
    }


def rates(figures: dict[str, dict[str, Any]], peak: float | None) -> dict[str, Any]:
    """Return the figures, each also as a share of the peak where that is known."""
    for known in figures.values():
        known["share_of_peak"] = known["median"] / peak if peak else None
    return {"peak_gb_per_s": peak, "figures": figures}


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.bandwidth", description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--bytes", type=int, help="size of one buffer; default: fits the device")
    parser.add_argument("--runs", type=int, default=20, help="timed runs a kernel")
    parser.add_argument("--warmup", type=int, default=10, help="runs before that, not counted")
    options = parser.parse_args(arguments)
    if options.runs < 1 or options.warmup < 0:
        parser.error("--runs must be at least 1 and --warmup at least 0")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    try:
        report = probe(importlib.import_module("torch"), options)
    except ImportError as error:
        report = {"schema": SCHEMA, "error": f"{sys.executable} has no torch: {error}"}
    except (CannotMeasure, RuntimeError) as error:  # torch raises RuntimeError, OutOfMemoryError
        report = {"schema": SCHEMA, "error": f"{error}"}
    print(json.dumps(report))
    wrong = [f["wrong"] for f in report.get("figures", {}).values() if f["wrong"]]
    return 1 if wrong or "error" in report else 0


if __name__ == "__main__":
    raise SystemExit(main())
