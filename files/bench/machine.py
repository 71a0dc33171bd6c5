"""What the host says of itself: CPU, memory, kernel, GPUs. No field is guessed; absent is None."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

GPU_FIELDS = ("name", "memory.total", "driver_version", "compute_cap", "power.limit")
# EC2 shows the instance type in the firmware's product name, to everybody.
PRODUCT = Path("sys/devices/virtual/dmi/id/product_name")


def describe(root: Path = Path("/")) -> dict[str, Any]:
    """Return the machine's description, read below `root`."""
    return {
        "hostname": platform.node(),
        "product": _first_line(root / PRODUCT),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "cpu": _cpu_model(root / "proc/cpuinfo"),
        "cores": os.cpu_count(),
        "memory_bytes": _memory(root / "proc/meminfo"),
        "gpus": _gpus(),
    }


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text().partition("\n")[0].strip() or None
    except OSError:
        return None


def _field(path: Path, *names: str) -> str | None:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    fields = dict(
        reversed([(k.strip(), v.strip()) for k, _, v in (x.partition(":") for x in lines)])
    )
    return next((fields[name] for name in names if name in fields), None)


def _cpu_model(path: Path) -> str | None:
    # x86 names the model; Arm gives part numbers (0xd0c is Neoverse N1, Graviton2).
    return _field(path, "model name", "CPU part")


def _memory(path: Path) -> int | None:
    total = _field(path, "MemTotal")
    return int(total.split()[0]) * 1024 if total else None


def _gpus() -> list[dict[str, str]]:
    query = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader"]
    try:
        ended = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [row.split(", ") for row in ended.stdout.splitlines()] if not ended.returncode else []
    return [dict(zip(GPU_FIELDS, row, strict=False)) for row in rows]
