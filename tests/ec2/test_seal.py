"""What must not travel in an image: seal.py on a folder that looks like a host."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from facts.script import FILES
from operations.bake import seal_plan
from operations.steps import Refusal

SEAL = FILES / "bake" / "seal.py"

GOES = [
    "etc/ssh/ssh_host_ed25519_key",
    "etc/vllm-g5g/api-key.env",
    "home/ubuntu/.bash_history",
    "home/ubuntu/.ssh/authorized_keys",
    "root/.aws/credentials",
    "root/.cache/huggingface/token",
    "root/.cache/pip/http/x",
    "root/.netrc",
    "root/.python_history",
    "tmp/pyinfra-1",
    "var/lib/amazon/ssm/Vault/Store/RegistrationKey",
    "var/lib/amazon/ssm/i-0123456789abcdef0/document/state/x",
    "var/lib/cloud/instances/i-0123456789abcdef0/user-data.txt",
    "var/lib/systemd/random-seed",
    "var/lib/vllm-g5g/prewarm.json",
    "var/log/journal/0123/system.journal",
    "var/tmp/build-1",
]
STAYS = [
    "etc/ssh/sshd_config",
    "etc/vllm-g5g/vllm.env",
    "opt/vllm-g5g/src/setup.py",
    "root/.bashrc",
    "tmp/systemd-private-1-chrony.service/tmp/x",
    "var/lib/vllm-g5g/build.json",
    "var/lib/vllm-g5g/models/gemma/model.safetensors",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host's files; nobody's but this test's."""
    for name in [*GOES, *STAYS]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("some text\n")
    (tmp_path / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/swaps").write_text("Filename\tType\tSize\tUsed\tPriority\n")
    return tmp_path


def seal(verb: str, root: Path, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", str(SEAL), verb, str(root)],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def files(root: Path) -> set[str]:
    return {
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and "proc" not in path.parts
    }


def test_what_must_not_travel_is_removed_and_all_else_stays(root: Path) -> None:
    ran = seal("seal", root)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert files(root) == {*STAYS, "etc/machine-id"}
    assert (root / "etc/machine-id").read_text() == ""
    assert json.loads(seal("state", root).stdout) == {"left": [], "tokens": []}


def test_state_names_what_would_travel_and_writes_nothing(root: Path) -> None:
    before = files(root)

    told = json.loads(seal("state", root).stdout)

    assert files(root) == before
    left = {str(Path(path).relative_to(root)) for path in told["left"]}
    assert {"etc/machine-id", "etc/vllm-g5g/api-key.env", "root/.netrc"} <= left
    assert not left & set(STAYS)
    assert told["tokens"] == []


@pytest.mark.leak
def test_a_token_left_anywhere_in_etc_or_a_home_stops_the_image(root: Path) -> None:
    token = "hf_" + "a1B2" * 9
    (root / "home/ubuntu/notes.txt").write_text(f"remember {token}\n")
    (root / "etc/key.conf").write_text("key=AKIAABCDEFGHIJKLMNOP\n")
    (root / "root/.netrc").write_text(f"password {token}\n")  # is removed: no reason to stop

    told = seal("state", root)
    ran = seal("seal", root)

    where = [str(root / "etc/key.conf"), str(root / "home/ubuntu/notes.txt")]
    assert json.loads(told.stdout)["tokens"] == where
    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        f"looks like a token: {path}; take it out, then bake again" for path in where
    ]
    assert token not in told.stdout + told.stderr + ran.stdout + ran.stderr


@pytest.fixture
def swap(root: Path) -> Path:
    """A swap file that fstab names and that is on, beside one of the machine around."""
    made = root / "swapfile"
    made.write_bytes(b"secret pages" * 300_000)
    (root / "etc/fstab").write_text(
        "# the disk, our file, a partition\n"
        "UUID=1 / ext4 defaults 0 1\n"
        "/swapfile none swap sw 0 0\n"
        "/dev/sdb1 none swap sw 0 0\n"
    )
    (root / "proc/swaps").write_text(
        f"Filename Type Size Used Priority\n/somebody/elses file 1 0 -2\n{made} file 3515 0 -3\n"
    )
    return made


def stubs(root: Path, status: int = 0) -> str:
    """Return a PATH whose swapoff and mkswap note what they are told."""
    folder = root / "opt/stubs"
    folder.mkdir()
    for name in ("swapoff", "mkswap"):
        text = f'#!/bin/sh\necho "{name} $*" >>{root}/opt/log\nexit {status}\n'
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_a_swap_file_is_blanked_in_place(root: Path, swap: Path) -> None:
    size = swap.stat().st_size

    ran = seal("seal", root, path=stubs(root))

    assert ran.returncode == 0, ran.stderr
    assert (root / "opt/log").read_text().splitlines() == [f"swapoff {swap}", f"mkswap {swap}"]
    assert swap.stat().st_size == size
    assert not swap.read_bytes().strip(b"\0")
    assert swap.stat().st_blocks * 512 >= size  # no holes


def test_swap_that_cannot_be_switched_off_stops_the_image(root: Path, swap: Path) -> None:
    ran = seal("seal", root, path=stubs(root, status=1))

    assert ran.returncode == 1
    assert ran.stderr.startswith("not sealed: Command '['swapoff'")
    assert len(ran.stderr.splitlines()) == 1
    assert b"secret" in swap.read_bytes()


def test_a_link_that_leads_nowhere_is_removed_too(root: Path) -> None:
    (root / "root/.netrc").unlink()
    os.symlink("/nonexistent", root / "root/.netrc")

    assert seal("seal", root).returncode == 0
    assert not os.path.lexists(root / "root/.netrc")


def _unit(state: str) -> Any:
    return {"state": {"ActiveState": state}, "sha256": ""}


def test_seal_plan() -> None:
    clean: Any = {"left": [], "tokens": []}
    assert seal_plan(clean, _unit("inactive"), "vllm.service") == []
    reasons = [
        step.reason
        for step in seal_plan(
            clean | {"left": ["/etc/machine-id"]}, _unit("active"), "vllm.service"
        )
        if not isinstance(step, Refusal)
    ]
    assert reasons == [
        "vllm.service is active; stop it",
        "1 paths must not travel (/etc/machine-id), and swap is blanked",
    ]
    (refusal,) = seal_plan(clean | {"tokens": ["/root/x"]}, _unit("active"), "vllm.service")
    assert isinstance(refusal, Refusal)
