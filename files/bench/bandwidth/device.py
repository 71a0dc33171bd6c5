"""What the device is: its cache, its memory, and how fast that could be at best."""

import ctypes
import os
import platform
from pathlib import Path
from typing import Any

# CUdevice_attribute numbers of the driver API's cuda.h; they never change.
MEMORY_CLOCK_KHZ, BUS_WIDTH_BITS = 36, 37


def peak_gb_per_s(clock_khz: int | None, bus_bits: int | None) -> float | None:
    """Return the theoretical peak: two transfers a clock over the whole bus width."""
    if not clock_khz or not bus_bits:
        return None
    return 2 * clock_khz * 1e3 * bus_bits / 8 / 1e9


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
