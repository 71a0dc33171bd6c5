"""What the fact tells of an installation that somebody touched after it was stamped."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FACT = Path(__file__).resolve().parents[2] / "files" / "facts" / "build.py"
MODULE = "vllm/config.py"


def recorded(path, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


@pytest.fixture
def site(tmp_path):
    """An installed distribution as pip leaves it, and the stamp of its build after it."""
    content = b"tile = 16\n"
    files = {MODULE: content, "vllm-0.32.0.dist-info/METADATA": b"Name: vllm\nVersion: 0.32.0\n"}
    record = "".join(recorded(path, data) for path, data in files.items())
    files["vllm-0.32.0.dist-info/RECORD"] = record.encode()
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / "build.json").write_text("{}")
    return tmp_path


def found(site):
    command = (sys.executable, FACT, site / "build.json", "no-such-unit.service")
    surroundings = os.environ | {"PYTHONPATH": str(site)}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=surroundings)
    return json.loads(told.stdout)


def edited_with_its_old_time(path):
    status = path.stat()
    path.write_bytes(b"tile = 32\n")  # as long as before
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES = {
    "nothing": (lambda path: None, []),
    "touched": (lambda path: path.touch(), []),
    "deleted": (lambda path: path.unlink(), [MODULE]),
    "edited and its time set back": (edited_with_its_old_time, [MODULE]),
}


@pytest.mark.parametrize(("change", "damaged"), CHANGES.values(), ids=CHANGES)
def test_only_what_differs_from_what_was_installed_is_damaged(site, change, damaged):
    change(site / MODULE)
    assert (found(site)["installed"], found(site)["damaged"]) == ("0.32.0", damaged)


def test_an_installation_whose_metadata_is_cut_short_has_no_version(site):
    (site / "vllm-0.32.0.dist-info" / "METADATA").write_text("")
    assert found(site)["installed"] == ""
    assert found(site)["damaged"] == ["vllm-0.32.0.dist-info/METADATA"]
