"""Making an image: what must not travel, which host is worth it, and the image itself."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.exceptions import DeployError
from pyinfra.context import ctx_host, ctx_inventory, ctx_state

from facts.aws import Aws, AwsError
from facts.build import FoundBuild, Stamp
from facts.ec2_image import Image, baked_images
from facts.script import FILES
from facts.smoke import SmokeState
from operations.bake import (
    Proof,
    Source,
    build_digest,
    image_plan,
    info_file,
    instance_of,
    proved_stamp,
    seal_plan,
    tell_images,
    unproved,
)
from operations.build import Build, Places
from operations.ec2_wait import Clock
from operations.smoke import Check, digest_of, program_files
from operations.steps import Refusal
from tests.ec2.cloud import Cloud
from tests.ec2.provisioning import ROOT
from tests.ec2.test_inventory import launch
from tests.ec2.test_wait import Hand

SEAL = FILES / "bake" / "seal.py"

# --- what must not travel

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


def test_a_swap_file_is_blanked_in_place(root: Path) -> None:
    swap = root / "swapfile"
    swap.write_bytes(b"secret pages" * 300_000)
    size = swap.stat().st_size
    (root / "proc/swaps").write_text(
        "Filename Type Size Used Priority\n"
        f"/dev/nvme1n1p2 partition 1 0 -2\n{swap} file 3515 0 -3\n"
    )
    stubs = root / "stubs"
    stubs.mkdir()
    for name in ("swapoff", "mkswap"):
        (stubs / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{root}/opt/log\n')
        (stubs / name).chmod(0o755)

    ran = seal("seal", root, path=f"{stubs}:/usr/bin:/bin")

    assert ran.returncode == 0, ran.stderr
    assert (root / "opt/log").read_text().splitlines() == [f"swapoff {swap}", f"mkswap {swap}"]
    assert swap.stat().st_size == size
    assert not swap.read_bytes().strip(b"\0")
    assert swap.stat().st_blocks * 512 >= size  # no holes


def test_a_link_that_leads_nowhere_is_removed_too(root: Path) -> None:
    (root / "root/.netrc").unlink()
    os.symlink("/nonexistent", root / "root/.netrc")

    assert seal("seal", root).returncode == 0
    assert not os.path.lexists(root / "root/.netrc")


def _unit(state: str) -> Any:
    return {"unit": {"ActiveState": state}, "sha256": {}}


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


# --- which host is worth it

BUILD = Build(
    version="0.32.0",
    source_digest="5ca1ab1e",
    environment={},
    requirements_lock="",
    kernels_lock="",
    artifacts=(),
    jobs=None,
)
PLACES = Places(tree="/t", python="/p", stamp="/s", work="/w", log="/l")
PROOF = Proof(BUILD, PLACES, Check("m", "q", "a", "/p"), "/usr/local/lib/vllm-g5g")
STAMP: Stamp = {
    "inputs": BUILD.inputs("2.12.0", "3.12.3"),
    "outputs": {"version": "0.32.0", "artifacts": {}, "wheel_sha256": "", "seconds": 1.0},
}


def built(**changes: Any) -> FoundBuild:
    found: Any = {
        "stamp": STAMP,
        "running": False,
        "installed": "0.32.0",
        "damaged": [],
        "damaged_count": 0,
        "torch": "2.12.0",
        "python": "3.12.3",
        "cores": 8,
        "memory_bytes": 16 << 30,
    }
    result: FoundBuild = found | changes
    return result


def checked(**changes: Any) -> SmokeState:
    served: dict[str, str | None] = {"/s": "0"}
    digest = digest_of(served, program_files(PROOF.programs), PROOF.check)
    record: Any = {"digest": digest, "passed": True, "complaints": [], "at": "2026-11-30T12:00:00Z"}
    return {"record": record | changes, "files": served}


def test_a_converged_and_proved_host_is_worth_it() -> None:
    assert unproved(built(), checked(), PROOF) == []
    assert proved_stamp("gpu-1", built(), checked(), PROOF) == STAMP


UNPROVED: dict[str, tuple[FoundBuild | None, SmokeState, str]] = {
    "no interpreter": (None, checked(), "found no /p"),
    "not built": (built(stamp=None), checked(), "has not been built"),
    "damaged": (built(damaged=["x.so"], damaged_count=1), checked(), "has 1 damaged files: x.so"),
    "other inputs": (built(torch="2.13.0"), checked(), "was built with torch"),
    "no check": (built(), {"record": None, "files": {}}, "no smoke check is on record"),
    "failed": (built(), checked(passed=False, complaints=["slow"]), "failed: slow"),
    "served something else": (built(), checked(digest="0"), "has changed since the check"),
}


@pytest.mark.parametrize(("found", "smoke", "words"), UNPROVED.values(), ids=UNPROVED)
def test_a_host_that_is_not_proved_is_refused(
    found: FoundBuild | None, smoke: SmokeState, words: str
) -> None:
    with pytest.raises(DeployError) as raised:
        proved_stamp("gpu-1", found, smoke, PROOF)
    assert str(raised.value).startswith("[gpu-1] cannot bake this host: ")
    assert words in str(raised.value)
    assert str(raised.value).endswith("Run `pyinfra inventory.py deploy.py` on it first.")


def test_the_info_file_is_the_same_for_the_same_build() -> None:
    digest = build_digest(STAMP)
    told = json.loads(info_file("/etc/i.json", digest, STAMP, checked(), "ami-1").content)
    assert (told["build"], told["base_image"]) == (digest, "ami-1")
    assert told["inputs"] == STAMP["inputs"]
    assert told["smoke"]["passed"] is True


# --- the image


def carry(plan: Any, said: list[str]) -> None:
    """Carry the steps out as pyinfra does; AWS's fault is raised instead of shown."""
    for step in plan:
        step.command.function.__closure__[0].cell_contents(said.append)


def images_of(aws: Aws, digest: str) -> list[Image]:
    return baked_images(aws, build=digest)


def test_an_image_is_made_once(aws: Aws, cloud: Cloud) -> None:
    (id,) = launch(aws)
    source = Source(id, build_digest(STAMP), "0.32.0")
    hand = Hand()

    carry(image_plan(aws, source, images_of(aws, source.digest), hand.clock), hand.said)

    (made,) = images_of(aws, source.digest)
    assert made.state == "available"
    assert made.source == f"build:{source.digest}"
    assert made.name.startswith(f"vllm-g5g vllm 0.32.0 {source.digest[:12]} ")
    assert image_plan(aws, source, [made], hand.clock) == []
    assert [line.split()[3:] for line in tell_images([made], source.digest)] == [
        ["is", "available,", "of", "this", "build"]
    ]


def test_a_pending_image_is_waited_for_not_made_again(aws: Aws, cloud: Cloud) -> None:
    (id,) = launch(aws)
    source = Source(id, build_digest(STAMP), "0.32.0")
    hand = Hand()
    carry(image_plan(aws, source, [], hand.clock), hand.said)
    (made,) = images_of(aws, source.digest)
    cloud.ec2.amis[made.id].state = "pending"
    hand.at[100] = lambda: setattr(cloud.ec2.amis[made.id], "state", "available")

    (step,) = image_plan(aws, source, images_of(aws, source.digest), hand.clock)
    carry([step], hand.said)

    assert step.reason == f"{made.id} is being made; wait for it"
    assert hand.time == 100
    assert cloud.actions().count("CreateImage") == 1


def test_an_image_that_fails_says_so(aws: Aws, cloud: Cloud) -> None:
    (id,) = launch(aws)
    source = Source(id, build_digest(STAMP), "0.32.0")
    hand = Hand()
    carry(image_plan(aws, source, [], Clock()), hand.said)
    (made,) = images_of(aws, source.digest)
    cloud.ec2.amis[made.id].state = "pending"
    plan = image_plan(aws, source, images_of(aws, source.digest), hand.clock)
    hand.at[10] = lambda: setattr(cloud.ec2.amis[made.id], "state", "failed")

    with pytest.raises(AwsError, match=f"the image {made.id} is failed"):
        carry(plan, hand.said)


def test_only_an_instance_can_be_baked(aws: Aws, cloud: Cloud) -> None:
    (id,) = launch(aws)
    assert instance_of(aws, f"@ssm/{id}").id == id
    for name in ("@podman/box", "@ssm/i-0123456789abcdef0", "@ssm/mi-0123456789abcdef0"):
        with pytest.raises(AwsError, match="no EC2 instance here"):
            instance_of(aws, name)


def test_bake_py_refuses_a_host_that_was_never_built() -> None:
    knobs: dict[str, Any] = {}
    for name in ("all", "cpu"):
        knobs |= runpy.run_path(str(ROOT / "group_data" / f"{name}.py"))
    data = {key: value for key, value in knobs.items() if not key.startswith("__")}
    inventory = Inventory((["@local"], data | {"python": "/nonexistent/python3"}))
    state = State(check_for_changes=True)
    state.init(inventory, Config())
    (host,) = inventory

    with ctx_state.use(state), ctx_inventory.use(inventory), ctx_host.use(host):
        connect_all(state)
        with pytest.raises(DeployError, match=r"\[@local\] cannot bake this host: found no /none"):
            runpy.run_path(str(ROOT / "bake.py"))
