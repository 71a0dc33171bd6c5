"""Hosts that can never serve, and what each is told."""

import pytest

from operations.preflight import GIB, Expected, plan
from operations.steps import Refusal, Step

G5G = Expected("cuda", ("aarch64",), "7.5", "/opt/pytorch/bin/python3", "2.12.0", 40.0, 7.0)
T4G = {"name": "NVIDIA T4G", "compute_capability": "7.5", "memory_mib": 15360, "driver": "595"}
FIT = {
    "architecture": "aarch64",
    "is_root": True,
    "init": "systemd",
    "system_state": "running",
    "cloud_init": "done",
    "memory_bytes": 16 * GIB,
    "cores": 8,
    "free_bytes": {"/opt": 80 * GIB, "/var/lib": 80 * GIB, "/tmp": 80 * GIB},
    "built": False,
    "epoch": 1000.0,
    "python_version": "3.12.3",
    "torch": {"version": "2.12.0+cu132", "architectures": ["sm_75", "sm_80"]},
    "gpus": [T4G],
    "gpu_error": "",
}
UNFIT = {
    "x86": ({"architecture": "x86_64"}, "architecture x86_64, wanted aarch64"),
    "not root": ({"is_root": False}, "an ordinary user, wanted root"),
    "no systemd": ({"init": "sh"}, "sh as process 1, wanted systemd"),
    "cloud-init failed": ({"cloud_init": "error"}, "cloud-init in error"),
    "clock off": ({"epoch": 2000.0}, "its clock +1000 s from ours"),
    "little memory": ({"memory_bytes": 4 * GIB}, "4.0 GiB of memory, wanted at least 7"),
    "disk full": (
        {"free_bytes": {"/opt": 12 * GIB, "/var/lib": 80 * GIB, "/tmp": 80 * GIB}},
        "12.0 GiB free under /opt, wanted at least 40",
    ),
    "no GPU": ({"gpus": [], "gpu_error": "nvidia-smi is not installed"}, "no NVIDIA GPU (nvidia-"),
    "other GPU": (
        {"gpus": [{**T4G, "compute_capability": "8.6"}]},
        "compute capability 8.6, wanted 7.5",
    ),
    "no torch": ({"torch": None}, "no torch there, wanted torch 2.12.0"),
    "no interpreter": ({"torch": None, "python_version": ""}, "no such interpreter"),
    "torch replaced": (
        {"torch": {"version": "2.13.0", "architectures": ["sm_75"]}},
        "torch 2.13.0 in /opt/pytorch/bin/python3, wanted 2.12.0",
    ),
    "torch without the arch": (
        {"torch": {"version": "2.12.0", "architectures": ["sm_80"]}},
        "torch for sm_80, wanted sm_75 among them",
    ),
}


@pytest.mark.parametrize(("change", "message"), UNFIT.values(), ids=UNFIT)
def test_an_unfit_host_is_refused_with_what_was_found(change, message):
    (refusal,) = plan({**FIT, **change}, G5G, now=1000.0)
    assert isinstance(refusal, Refusal)
    assert message in refusal.message


def test_all_faults_are_told_at_once():
    (refusal,) = plan({**FIT, "is_root": False, "gpus": []}, G5G, now=1000.0)
    assert "wanted root" in refusal.message
    assert "no NVIDIA GPU" in refusal.message


def test_a_fit_host_is_left_alone():
    assert plan(FIT, G5G, now=1000.0) == []


def test_a_built_host_needs_no_room_for_a_build():
    full = dict.fromkeys(FIT["free_bytes"], 5 * GIB)
    assert plan({**FIT, "free_bytes": full, "built": True}, G5G, now=1000.0) == []


def test_a_cpu_host_needs_no_gpu():
    cpu = Expected("cpu", ("x86_64", "aarch64"), None, G5G.python, "2.12.0", 6.0, 4.0)
    torch = {"version": "2.12.0+cpu", "architectures": []}
    assert plan({**FIT, "gpus": [], "torch": torch}, cpu, now=1000.0) == []


def test_cloud_init_is_waited_for():
    (step,) = plan({**FIT, "cloud_init": "running"}, G5G, now=1000.0)
    assert isinstance(step, Step)
    assert "still running" in step.reason
