"""The bandwidth probe without torch: its arithmetic, its refusals, what it reads off the host.

The kernels themselves run in the container (the deploy's smoke check) and on hardware
(tests/hardware/bandwidth.md).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.bench.bandwidth.buffers import CannotMeasure, buffer_bytes
from files.bench.bandwidth.conditions import conditions
from files.bench.bandwidth.device import cache_size, describe_cpu, peak_gb_per_s
from files.bench.bandwidth.kernels import figure, reduction_wrong

FILES = Path(__file__).resolve().parents[2] / "files"
GIB = 1 << 30
MIB = 1 << 20

PEAKS = {
    "T4G": (5_001_000, 256, 320.064),  # [field: 320.1]
    "H200": (3_201_000, 6016, 4814.304),  # [measured]
    "clock unknown": (None, 256, None),
    "driver says 0": (0, 256, None),
}


@pytest.mark.parametrize(("clock", "bus", "peak"), PEAKS.values(), ids=PEAKS)
def test_the_peak_is_two_transfers_a_clock(
    clock: int | None, bus: int | None, peak: float | None
) -> None:
    assert peak_gb_per_s(clock, bus) == (pytest.approx(peak) if peak else None)


def test_a_figure_is_bytes_over_seconds() -> None:
    found = figure(2 * 10**9, [1.0, 0.5, 2.0], None)
    assert (found["median"], found["min"], found["max"], found["n"]) == (2.0, 1.0, 4.0, 3)
    assert found["spread"] == 1.5


BUFFERS = {
    "a T4G that serves has little left": (None, 4 * MIB, GIB, 4 * GIB, GIB // 4),
    "an empty H200 gets the ceiling": (None, 60 * MIB, 139 * GIB, 4 * GIB, 4 * GIB),
    "as asked, in whole patterns": (512 * MIB + 5, 4 * MIB, GIB, 4 * GIB, 512 * MIB),
}


@pytest.mark.parametrize(
    ("asked", "cache", "free", "ceiling", "size"), BUFFERS.values(), ids=BUFFERS
)
def test_buffers_fit(asked: int | None, cache: int, free: int, ceiling: int, size: int) -> None:
    assert buffer_bytes(asked, cache, free, ceiling) == size


def test_a_buffer_that_the_cache_could_hold_is_refused() -> None:
    with pytest.raises(CannotMeasure, match="less than 4 times the 62,914,560 bytes"):
        buffer_bytes(None, 60 * MIB, 300 * MIB, 4 * GIB)


@given(st.integers(1, 1 << 34), st.integers(1 << 20, 1 << 38))
def test_a_buffer_is_whole_patterns_of_several_caches_or_refused(cache: int, free: int) -> None:
    try:
        size = buffer_bytes(None, cache, free, 4 * GIB)
    except CannotMeasure:
        return
    assert size % 4096 == 0
    assert 4 * cache <= size <= free // 4


def test_a_wrong_sum_is_named_and_a_not_a_number_too() -> None:
    assert reduction_wrong([1000.0, 1000.05], 1000.0) is None
    assert reduction_wrong([1000.0, 1001.0], 1000.0) == "1 reductions differ from 1000.0: 1001.0"
    assert "inf" in str(reduction_wrong([float("inf")], 1000.0))  # a float16 sum, say
    assert reduction_wrong([float("nan")], 1000.0) is not None


def test_cache_sizes_as_sysfs_writes_them() -> None:
    assert [cache_size(text) for text in ("32768K\n", "32M", "512", "")] == [
        32 * MIB,
        32 * MIB,
        512,
        0,
    ]


def test_a_cpu_is_described_by_its_largest_cache(tmp_path: Path) -> None:
    cache = tmp_path / "sys/devices/system/cpu/cpu0/cache"
    for index, size in enumerate(("64K", "1024K", "32768K")):
        (cache / f"index{index}").mkdir(parents=True)
        (cache / f"index{index}" / "size").write_text(size)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 100 kB\nMemAvailable: 50 kB\n")
    found = describe_cpu(tmp_path)
    assert (found["cache_bytes"], found["free_bytes"]) == (32 * MIB, 50 * 1024)


def stub_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_other_processes_on_the_gpu_are_told_and_ours_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_smi(
        tmp_path,
        monkeypatch,
        f"""case "$*" in
        *query-gpu*) echo '580.1, Enabled, 405, 5001, 300, P8, 40, 0x0000000000000001';;
        *) printf '812, python3, 13501\\n{os.getpid()}, python3, 200\\n';;
        esac""",
    )
    found = conditions("0", lambda: None)
    assert (found["ecc.mode.current"], found["clocks.mem"]) == ("Enabled", "405")
    assert found["other_processes"] == [{"pid": "812", "process": "python3", "mib": "13501"}]


@pytest.mark.parametrize("script", ["exit 9", "echo nonsense", ":"])
def test_an_nvidia_smi_that_fails_is_no_reason_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    stub_smi(tmp_path, monkeypatch, script)
    assert isinstance(conditions("0", lambda: None)["other_processes"], list)


def test_an_interpreter_without_torch_is_named() -> None:
    command = [sys.executable, "-B", "-S", "-m", "bench.bandwidth"]
    ended = subprocess.run(command, cwd=FILES, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "has no torch" in json.loads(ended.stdout)["error"]
