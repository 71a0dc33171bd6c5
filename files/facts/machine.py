"""Print what machine this is, as JSON. Arguments: interpreter, import or metadata, stamp."""

import json
import os
import platform
import subprocess
import sys
import time

# importlib.metadata would take 60 ms to import, twice what all else here takes (measured).
ASK_METADATA = """
import glob, json, platform, sys
FILES = (
    f"{directory}/{name}"
    for directory in sys.path
    for name in glob.glob("torch-*.dist-info/METADATA", root_dir=directory)
)
torch = None
for path in FILES:
    with open(path) as file:
        version = next((line.split()[1] for line in file if line.startswith("Version: ")), "")
    torch = {"version": version, "architectures": []}
    break  # the first is the one that is imported
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


def start(*command):
    """Start a command; its answer is for finish() to fetch. None where it cannot be started."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True
        )
    except OSError:
        return None


def finish(process):
    """Return exit status, standard output and error."""
    if process is None:
        return 127, "", "nothing to start"
    try:
        output, error = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        return 126, "", "it did not end within 120 s"
    return process.returncode, output.strip(), error.strip()


def interpreter(process):
    status, output, _ = finish(process)
    return json.loads(output.splitlines()[-1]) if status == 0 else ["", None]


def gpus(process):
    if process is None:
        return [], "nvidia-smi is not installed"
    status, output, error = finish(process)
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


def cloud_init(process):
    if process is None:
        return "absent"
    _, output, _ = finish(process)
    return output.removeprefix("status:").strip().split("\n")[0]


def free_bytes(path):
    while not os.path.exists(path):
        path = os.path.dirname(path)
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def main(python, how, stamp):
    # Side by side: each is a program that takes long to start, on a small host half a second.
    asked = start(python, "-I", "-c", ASK_TORCH if how == "import" else ASK_METADATA)
    smi = start("nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv,noheader,nounits")
    booted, state = start("cloud-init", "status"), start("systemctl", "is-system-running")
    python_version, torch = interpreter(asked)
    found_gpus, gpu_error = gpus(smi)
    with open("/proc/1/comm") as file:
        init = file.read().strip()
    print(
        json.dumps(
            {
                "architecture": platform.machine(),
                "is_root": os.geteuid() == 0,
                "init": init,
                "system_state": finish(state)[1],
                "cloud_init": cloud_init(booted),
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
