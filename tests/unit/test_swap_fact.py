"""What the swap fact sees of a real file."""

import json
import os
import shutil
import subprocess
import sys

import pytest

MIB = 1024**2


def found(path):
    done = subprocess.run(
        [sys.executable, "files/facts/swap.py", str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.mark.skipif(shutil.which("mkswap") is None, reason="formats a file with mkswap")
def test_a_formatted_file_is_described(tmp_path):
    path = tmp_path / "swap"
    path.write_bytes(b"\0" * MIB)
    path.chmod(0o600)
    subprocess.run(["mkswap", path], check=True, capture_output=True)
    state = found(path)
    assert state["file"]["formatted"]
    assert (state["file"]["bytes"], state["file"]["mode"]) == (MIB, "600")
    assert state["file"]["owner"] == os.geteuid()
    assert state["active"] is None
    assert state["free"] > 0


def test_holes_show_as_blocks_that_are_not_there(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(MIB)
    state = found(path)["file"]
    assert (state["bytes"], state["formatted"]) == (MIB, False)
    assert state["allocated"] < MIB


def test_absent_and_irregular_are_states(tmp_path):
    assert found(tmp_path / "none")["file"] is None
    assert not found("/dev/null")["file"]["regular"]


def test_memory_is_what_the_kernel_has(tmp_path):
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found(tmp_path / "none")["memory"] == pages
