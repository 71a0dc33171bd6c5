"""Measure memory bandwidth with torch alone, on a CUDA GPU or a CPU; print one JSON object.

    /opt/pytorch/bin/python3 bandwidth.py [--device auto|cuda|cuda:N|cpu] [--bytes N] [--runs 20]

Kernels over float32 buffers several times the last-level cache: `copy`, `write` (a fill), `scale`
(in place) and reductions, of which the fastest is the figure `read`: a reduction can be limited by
its own shape, the memory cannot. Each run is timed by the device's own events (a CPU: a monotonic
clock) and each result is checked. Figures are GB/s of 10^9 bytes that cross the memory bus: a copy,
a scale and a dot product count twice. `plain_copy_gb_per_s` is the same copy timed another way (one
interval around ten calls), so that `copy` has a witness in the same run. Exit status: 0 measured
and right; 1 could not measure, or a result was wrong (the JSON says which).
"""

import argparse
import ctypes
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = "vllm-g5g/bandwidth/1"
PERIOD = 1024  # the pattern repeats 0/1024 .. 1023/1024: exact in float32, and so is its sum
GIB = 1 << 30
CACHE_MULTIPLE = 4  # a smaller buffer would partly be served from the cache
# CUdevice_attribute numbers of the driver API's cuda.h; they never change.
MEMORY_CLOCK_KHZ, BUS_WIDTH_BITS = 36, 37
SMI_FIELDS = (
    *("driver_version", "ecc.mode.current", "clocks.mem", "clocks.max.mem", "clocks.sm"),
    *("pstate", "temperature.gpu", "clocks_throttle_reasons.active"),
)


class CannotMeasure(Exception):
    """There is no figure to be had; the message says why and what to do."""


@dataclass(frozen=True)
class Kernel:
    """One way to use the memory: `run(i)` starts the i-th call, `wrong()` judges all of them."""

    name: str
    crossings: int  # how often the buffer crosses the bus in one call
    run: Callable[[int], Any]
    wrong: Callable[[], str | None]


def figure(bytes_moved: int, seconds: Iterable[float], wrong: str | None) -> dict[str, Any]:
    """Return GB/s of moving `bytes_moved` in each of `seconds`; `wrong` says what came out wrong.

    `spread` is (max - min) / median.
    """
    runs = [bytes_moved / taken / 1e9 for taken in seconds]
    median, low, high = statistics.median(runs), min(runs), max(runs)
    return {
        "median": median,
        "min": low,
        "max": high,
        "mean": statistics.fmean(runs),
        "stdev": statistics.stdev(runs) if len(runs) > 1 else None,
        "spread": (high - low) / median,
        "n": len(runs),
        "wrong": wrong,
    }


def peak_gb_per_s(clock_khz: int | None, bus_bits: int | None) -> float | None:
    """Return the theoretical peak: two transfers a clock over the whole bus width."""
    if not clock_khz or not bus_bits:
        return None
    return 2 * clock_khz * 1e3 * bus_bits / 8 / 1e9


def buffer_bytes(asked: int | None, cache: int, free: int, ceiling: int) -> int:
    """Return the size of one buffer, a whole number of patterns.

    Two buffers and a comparison's temporary must fit, so by default one takes at most a quarter
    of what is free. Raises CannotMeasure where that is less than four times the cache.
    """
    size = asked if asked is not None else min(ceiling, free // 4)
    size -= size % (4 * PERIOD)  # whole patterns of four-byte values
    if size < max(CACHE_MULTIPLE * cache, 4 * PERIOD):
        raise CannotMeasure(
            f"a buffer of {size:,} bytes ({free:,} are free) is less than {CACHE_MULTIPLE} times "
            f"the {cache:,} bytes of last-level cache: stop what holds the memory, or ask for more"
        )
    return size


def reduction_wrong(values: Iterable[Any], wanted: float) -> str | None:
    """Say which float32 reductions are off; the order of summation may move the last bits."""
    bad = [value for value in map(float, values) if not abs(value - wanted) <= 1e-4 * wanted]
    return f"{len(bad)} reductions differ from {wanted}: {bad[0]}" if bad else None


class Bench:
    """The buffers, the kernels over them, and the clock that fits the device."""

    def __init__(self, torch: Any, device: Any, size: int) -> None:
        self.torch, self.device, self.size = torch, device, size
        self.count = size // 4
        self.pattern = torch.arange(PERIOD, dtype=torch.float32, device=device) / PERIOD
        self.source = self.pattern.repeat(self.count // PERIOD)
        self.target = torch.zeros_like(self.source)
        self.sums: list[Any] = []
        self.dots: list[Any] = []

    def kernels(self) -> list[Kernel]:
        """Return the kernels in the order to run them: `read_dot` wants the copy done.

        No dot product on a CPU: its BLAS adds in so few float32 lanes that the sum drifts by 0.1 %.
        """
        source, target, dot = self.source, self.target, self.torch.dot
        every = [
            Kernel("copy", 2, lambda i: target.copy_(source), lambda: self._unlike(target, 1)),
            Kernel("read_sum", 1, lambda i: self.sums.append(source.sum()), self._sums_wrong),
            Kernel(
                "read_dot", 2, lambda i: self.dots.append(dot(source, target)), self._dots_wrong
            ),
            Kernel("write", 1, lambda i: target.fill_(i + 1), self._fill_wrong),
            Kernel(
                "scale",
                2,
                lambda i: source.mul_((0.5, 2.0)[i % 2]),
                lambda: self._unlike(source, 0.5),
            ),
        ]
        return [k for k in every if k.name != "read_dot" or self.device.type == "cuda"]

    def seconds(self, call: Callable[[], Any]) -> float:
        """Return how long the device took for what `call` starts."""
        if self.device.type != "cuda":
            begin = time.perf_counter_ns()
            call()
            return (time.perf_counter_ns() - begin) / 1e9
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        call()
        events[1].record()
        events[1].synchronize()
        return float(events[0].elapsed_time(events[1])) / 1e3

    def measure(self, kernel: Kernel, warmup: int, runs: int) -> dict[str, Any]:
        # An odd number of calls, so that `scale` does not end where it began.
        warmup += 1 - (warmup + runs) % 2
        self.calls = warmup + runs
        taken = [self.seconds(lambda i=i: kernel.run(i)) for i in range(self.calls)]  # type: ignore[misc]
        return figure(kernel.crossings * self.size, taken[warmup:], kernel.wrong())

    def plain_copy(self, calls: int = 10) -> float:
        """Return GB/s of `calls` plain `copy_` in one interval."""
        taken = self.seconds(lambda: [self.target.copy_(self.source) for _ in range(calls)])
        return 2 * self.size * calls / taken / 1e9

    def _sums_wrong(self) -> str | None:
        return reduction_wrong(self.sums, self.count * (PERIOD - 1) / 2 / PERIOD)

    def _dots_wrong(self) -> str | None:
        squares = (PERIOD - 1) * (2 * PERIOD - 1) / 6 / PERIOD  # a pattern's, over its length
        return reduction_wrong(self.dots, self.count * squares / PERIOD)

    def _unlike(self, buffer: Any, factor: float) -> str | None:
        rows = buffer.view(-1, PERIOD)
        equal = self.torch.equal(rows, (self.pattern * factor).expand_as(rows))
        return None if equal else f"the buffer does not hold {factor:g} times the pattern"

    def _fill_wrong(self) -> str | None:
        low, high = float(self.target.min()), float(self.target.max())
        right = low == high == self.calls
        return None if right else f"filled with {self.calls}, holds {low} to {high}"


def driver_attribute(ordinal: int, attribute: int) -> int | None:
    """Return an attribute of a device as CUDA numbers it here, or None if the driver fails."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, value = ctypes.c_int(), ctypes.c_int()
    failed = cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), ordinal)
    failed = failed or cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    return None if failed else value.value


def describe_cuda(torch: Any, device: Any) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(device)
    ordinal = device.index or 0
    uuid = getattr(properties, "uuid", None)
    return {
        "kind": "cuda",
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "smi_id": f"GPU-{uuid}" if uuid else str(ordinal),
        "cache_bytes": properties.L2_cache_size,
        "memory_bytes": properties.total_memory,
        "free_bytes": torch.cuda.mem_get_info(device)[0],
        "memory_clock_khz": driver_attribute(ordinal, MEMORY_CLOCK_KHZ),
        "bus_width_bits": driver_attribute(ordinal, BUS_WIDTH_BITS),
    }


def cache_size(text: str) -> int:
    """Return the bytes that sysfs means by `32768K`, `32M` or `512`."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    text = text.strip()
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text or 0)


def describe_cpu(root: Path = Path("/")) -> dict[str, Any]:
    """Describe the CPU and its memory; Linux says nothing of memory clock or bus without root."""
    sizes = root.glob("sys/devices/system/cpu/cpu0/cache/index*/size")
    fields = (line.split() for line in (root / "proc/meminfo").read_text().splitlines())
    memory = {words[0].rstrip(":"): int(words[1]) * 1024 for words in fields}
    return {
        "kind": "cpu",
        "name": f"{platform.machine()}, {os.cpu_count()} cores",
        "cache_bytes": max((cache_size(path.read_text()) for path in sizes), default=32 << 20),
        "memory_bytes": memory["MemTotal"],
        "free_bytes": memory["MemAvailable"],
        "memory_clock_khz": None,
        "bus_width_bits": None,
    }


def smi_lines(arguments: list[str], busy: Callable[[], Any]) -> list[list[str]]:
    """Return nvidia-smi's CSV while the device is kept `busy`; empty where it has no answer."""
    command = ["nvidia-smi", *arguments, "--format=csv,noheader,nounits"]
    try:
        smi = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return []
    deadline = time.monotonic() + 30
    while smi.poll() is None and time.monotonic() < deadline:
        busy()
    smi.kill()  # a no-op once it has ended
    lines = smi.communicate()[0].decode(errors="replace").splitlines()
    return [[cell.strip() for cell in line.split(",")] for line in lines] if not smi.poll() else []


def conditions(smi_id: str, busy: Callable[[], Any]) -> dict[str, Any]:
    """Return what can hold a GPU back: ECC, clocks under load, other processes on it."""
    state = smi_lines(["-i", smi_id, f"--query-gpu={','.join(SMI_FIELDS)}"], busy)
    apps = smi_lines(["-i", smi_id, "--query-compute-apps=pid,process_name,used_memory"], busy)
    others = [dict(zip(("pid", "process", "mib"), app, strict=False)) for app in apps]
    return {
        **(dict(zip(SMI_FIELDS, state[0], strict=False)) if state else {}),
        "other_processes": [app for app in others if app["pid"] != str(os.getpid())],
    }


def probe(torch: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Run every kernel and return the report."""
    asked = options.device
    device = torch.device(("cuda" if torch.cuda.is_available() else "cpu", asked)[asked != "auto"])
    cuda = device.type == "cuda"
    about = describe_cuda(torch, device) if cuda else describe_cpu()
    cache, free = about["cache_bytes"], about["free_bytes"]
    ceiling = 4 * GIB if cuda else max(GIB // 4, 2 * CACHE_MULTIPLE * cache)
    bench = Bench(torch, device, buffer_bytes(options.bytes, cache, free, ceiling))
    figures = {k.name: bench.measure(k, options.warmup, options.runs) for k in bench.kernels()}
    reads = [f for name, f in figures.items() if name.startswith("read_")]
    figures["read"] = max(reads, key=lambda f: f["median"])
    return {
        "schema": SCHEMA,
        "device": about,
        "software": {"torch": torch.__version__, "cuda": torch.version.cuda},
        "method": {"buffer_bytes": bench.size, "runs": options.runs, "warmup": options.warmup},
        **rates(figures, peak_gb_per_s(about["memory_clock_khz"], about["bus_width_bits"])),
        "plain_copy_gb_per_s": bench.plain_copy(),
        "conditions": conditions(about["smi_id"], bench.plain_copy) if cuda else {},
    }


def rates(figures: dict[str, dict[str, Any]], peak: float | None) -> dict[str, Any]:
    """Return the figures, each also as a share of the peak where that is known."""
    for known in figures.values():
        known["share_of_peak"] = known["median"] / peak if peak else None
    return {"peak_gb_per_s": peak, "figures": figures}


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
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
