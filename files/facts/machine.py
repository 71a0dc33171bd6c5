"""Print what machine this is, as JSON. Arguments: interpreter, import or metadata, stamp."""

import json
import os
import platform
import subprocess
import sys
import time

ASK_METADATA = """
import importlib.metadata as metadata, json, platform
try:
    torch = {"version": metadata.version("torch"), "architectures": []}
except metadata.PackageNotFoundError:
    torch = None
print(json.dumps([platform.python_version(), torch]))
"""
ASK_TORCH = """
import json, platform
try:
    import torch
    # The list that is compiled in; get_arch_list() is empty where no GPU is visible.
    found = {"version": torch.__version__, "architectures": torch._C._cuda_getArchFlags().split()}
except ImportError:
    found = None
print(json.dumps([platform.python_version(), found]))
"""
GPU_FIELDS = "name,compute_cap,memory.total,driver_version"


def run(*command):
    """Return exit status, standard output and error; 127 where there is no such program."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except FileNotFoundError:
        return 127, "", f"{command[0]} is not installed"
    except (PermissionError, subprocess.TimeoutExpired) as error:
        return 126, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def interpreter(python, how):
    status, output, _ = run(python, "-c", ASK_TORCH if how == "import" else ASK_METADATA)
    return json.loads(output.splitlines()[-1]) if status == 0 else ["", None]


def gpus():
    status, output, error = run(
        "nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader,nounits"
    )
    if status != 0:
        return [], error or output
    found = []
    for line in output.splitlines():
        name, capability, memory, driver = (field.strip() for field in line.split(","))
        found.append(
            {
                "name": name,
                "compute_capability": capability,
                "memory_mib": int(memory),
                "driver": driver,
            }
        )
    return found, ""


def cloud_init():
    status, output, _ = run("cloud-init", "status")
    if status == 127:
        return "absent"
    return output.removeprefix("status:").strip().split("\n")[0]


def free_bytes(path):
    while not os.path.exists(path):
        path = os.path.dirname(path)
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def main(python, how, stamp):
    python_version, torch = interpreter(python, how)
    found_gpus, gpu_error = gpus()
    with open("/proc/1/comm") as file:
        init = file.read().strip()
    print(
        json.dumps(
            {
                "architecture": platform.machine(),
                "is_root": os.geteuid() == 0,
                "init": init,
                "system_state": run("systemctl", "is-system-running")[1],
                "cloud_init": cloud_init(),
                "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
                "cores": os.cpu_count(),
                "free_bytes": {path: free_bytes(path) for path in ("/opt", "/var/lib", "/tmp")},
                "built": os.path.exists(stamp),
                "epoch": time.time(),
                "python_version": python_version,
                "torch": torch,
                "gpus": found_gpus,
                "gpu_error": gpu_error,
            }
        )
    )


main(*sys.argv[1:])
