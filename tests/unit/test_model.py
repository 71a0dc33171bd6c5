"""When a checkpoint is made again, and that its manifest tells the truth."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from operations.model import Producer, downloaded, plan

ROOT = Path(__file__).resolve().parents[2]
PRODUCER = Producer("org/model@main", Path(__file__))
PLANS = {
    "whole": ({"identity": "org/model@main", "faults": [], "fault_count": 0}, []),
    "missing": (None, ["/m is missing"]),
    "another": (
        {"identity": "org/other@main", "faults": [], "fault_count": 0},
        ["/m holds org/other@main, wanted org/model@main"],
    ),
    "damaged": (
        {"identity": "org/model@main", "faults": ["a is missing"], "fault_count": 1},
        ["/m has 1 damaged files: a is missing"],
    ),
}


@pytest.mark.parametrize(("found", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(found, reasons):
    assert [s.reason for s in plan(found, PRODUCER, "/m", "/py", "/log")] == reasons


def test_a_token_goes_to_the_download_by_file_alone():
    producer = downloaded("org/model", "main", "/run/vllm-g5g/token.env", {})
    assert producer.properties == (
        ("EnvironmentFile", "/run/vllm-g5g/token.env"),
        ("LimitCORE", "0"),
    )


WRITE_TWO = "import sys; open(sys.argv[1] + '/a', 'w').write('1'); open(sys.argv[1] + '/b', 'w')"


def place(directory, producer=WRITE_TWO):
    given = directory.parent / "input.json"
    spec = {
        "directory": str(directory),
        "identity": "two files",
        "python": sys.executable,
        "producer": producer,
        "arguments": [],
    }
    given.write_text(json.dumps(spec))
    program = ROOT / "files" / "model" / "place.py"
    return subprocess.run(
        (sys.executable, program, given), capture_output=True, text=True, check=False
    )


def state(directory):
    program = ROOT / "files" / "facts" / "model.py"
    done = subprocess.run(
        (sys.executable, program, directory), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


DAMAGES = {
    "deleted": (lambda a: a.unlink(), "a is missing"),
    "cut short": (lambda a: a.write_text(""), "a has 0 bytes, wanted 1"),
    "same size, other content": (lambda a: a.write_text("2"), "a differs in content"),
}


@pytest.mark.parametrize(("damage", "fault"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_seen_and_mended(damage, fault, tmp_path):
    directory = tmp_path / "model"
    assert place(directory).returncode == 0
    assert state(directory) == {"identity": "two files", "faults": [], "fault_count": 0}
    damage(directory / "a")
    assert state(directory)["faults"] == [fault]
    assert place(directory).returncode == 0
    assert state(directory)["fault_count"] == 0


def test_a_failed_download_leaves_the_old_checkpoint_and_its_own_rest(tmp_path):
    directory = tmp_path / "model"
    place(directory)
    done = place(directory, WRITE_TWO + "; sys.exit(1)")
    assert done.returncode != 0
    assert "could not make two files" in done.stderr
    assert state(directory)["fault_count"] == 0
    assert sorted(os.listdir(f"{directory}.partial")) == [".identity", "a", "b"]
