"""What holds a GPU back, as nvidia-smi tells it while the GPU is at work."""

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

SMI_FIELDS = (
    *("driver_version", "ecc.mode.current", "clocks.mem", "clocks.max.mem", "clocks.sm"),
    *("pstate", "temperature.gpu", "clocks_throttle_reasons.active"),
)


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
