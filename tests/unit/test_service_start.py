"""The check before each start: what it refuses, and what it records."""

import hashlib
import json
import socket

import pytest

from files.service import check_start
from files.service.check_start import checkpoint_problem, essence, gpu_problem, stamp_problem


@pytest.fixture
def checkpoint(tmp_path):
    """A checkpoint in two shards, with its index."""
    shards = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    for name in shards.values():
        (tmp_path / name).write_bytes(b"weights")
    return tmp_path


def test_a_whole_checkpoint_is_let_through(checkpoint):
    assert checkpoint_problem(str(checkpoint)) == ""


@pytest.mark.parametrize("name", ["config.json", "model-2.safetensors"])
def test_a_missing_file_is_named(checkpoint, name):
    (checkpoint / name).unlink()
    assert f"{name} is missing or not readable" in checkpoint_problem(str(checkpoint))


def test_an_empty_file_is_named(checkpoint):
    (checkpoint / "model-1.safetensors").write_bytes(b"")
    assert "model-1.safetensors is empty" in checkpoint_problem(str(checkpoint))


def test_an_empty_directory_is_not_a_checkpoint(tmp_path):
    assert "the checkpoint is not downloaded" in checkpoint_problem(str(tmp_path))


def test_a_checkpoint_in_one_file_needs_no_index(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert checkpoint_problem(str(tmp_path)) == ""


def test_a_build_without_its_stamp_is_refused(tmp_path):
    stamp = tmp_path / "build.json"
    assert "its last build failed" in stamp_problem(str(stamp))
    stamp.write_text('{"half')
    assert "cannot be read" in stamp_problem(str(stamp))
    stamp.write_text("{}")
    assert stamp_problem(str(stamp)) == ""


@pytest.mark.parametrize(
    ("wanted", "driver", "nodes", "said"),
    [
        (0, 0, 0, ""),
        (1, 1, 1, ""),
        (1, 0, 0, "sees no GPU"),
        (1, 1, 0, "found 1 GPUs and 0 device nodes"),
        (2, 1, 1, "configured for 2"),
    ],
)
def test_the_gpus_must_be_there(tmp_path, wanted, driver, nodes, said):
    for number in range(driver):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:0{number}").mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia-uvm").touch()
    for number in range(nodes):
        (tmp_path / f"dev/nvidia{number}").touch()
    problem = gpu_problem(wanted, root=str(tmp_path))
    assert said in problem
    assert bool(problem) is bool(said)


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost"])
def test_a_port_that_is_taken_is_named(address):
    with socket.create_server((address, 0)) as other:
        port = other.getsockname()[1]
        problem = check_start.listen_problem(address, port)
        assert problem == f"cannot listen on {address} port {port} (Address already in use)"
    assert check_start.listen_problem(address, port) == ""


def test_an_address_of_another_machine_is_named():
    assert "192.0.2.1 port 8000" in check_start.listen_problem("192.0.2.1", 8000)


def test_the_record_tells_content_from_comment(tmp_path):
    unit = tmp_path / "unit"
    unit.write_text("# ours\n\n[Service]\n; theirs\nUser=vllm\n")
    (found,) = check_start.record([str(unit)]).values()
    assert found["sha256"] == hashlib.sha256(b"[Service]\nUser=vllm").hexdigest()
    assert essence("# other words\n[Service]\nUser=vllm\n") == "[Service]\nUser=vllm"


def test_the_record_of_what_is_not_there_is_empty(tmp_path):
    path = str(tmp_path / "none")
    assert check_start.record([path]) == {path: {"version": "", "sha256": ""}}


def test_the_record_is_written_only_when_the_start_may_go_on(checkpoint, capsys):
    stamp, record = checkpoint / "build.json", checkpoint / "started.json"
    words = ["--stamp", str(stamp), "--checkpoint", str(checkpoint), "--gpus", "0"]
    words += ["--listen", "127.0.0.1", "0"]
    words += ["--record", str(record), "--watch", str(stamp)]
    assert check_start.main(words) == 1
    assert "refusing to start: no build stamp" in capsys.readouterr().err
    assert not record.exists()
    stamp.write_text("{}")
    assert check_start.main(words) == 0
    assert json.loads(record.read_text())[str(stamp)]["version"]
