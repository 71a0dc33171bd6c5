"""Making an image: which host is worth it, and the image itself."""

import json
import runpy
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.exceptions import DeployError
from pyinfra.context import ctx_host, ctx_inventory, ctx_state

from facts.aws import Aws, AwsError
from facts.build import FoundBuild
from facts.ec2_image import Image, baked_images
from facts.smoke import SmokeState
from operations.bake import (
    Proof,
    Source,
    build_digest,
    image_plan,
    info_file,
    instance_of,
    proved_stamp,
    tell_images,
    unproved,
)
from operations.build import Places
from operations.ec2_wait import Clock
from operations.smoke import Check, digest_of, program_files
from tests.builds import BUILD, STAMP, built
from tests.ec2.cloud import Cloud
from tests.ec2.hand import Hand
from tests.ec2.provisioning import ROOT, carry, launch

PLACES = Places(tree="/t", python="/p", stamp="/s", work="/w", log="/l")
TEXTS = {"/etc/systemd/system/vllm.service": "[Unit]\n"}
PROOF = Proof(BUILD, PLACES, Check("m", "q", "a", "/p"), TEXTS, "/usr/local/lib/vllm-g5g")


def checked(**changes: Any) -> SmokeState:
    served: dict[str, str | None] = {"/s": "0"}
    digest = digest_of({**served, **TEXTS}, program_files(PROOF.programs), PROOF.check)
    record: Any = {"digest": digest, "passed": True, "complaints": [], "at": "2026-11-30T12:00:00Z"}
    return {"record": record | changes, "files": served}


def test_a_converged_and_proved_host_is_worth_it() -> None:
    assert unproved(built(), checked(), PROOF) == []
    assert proved_stamp("gpu-1", built(), checked(), PROOF) == STAMP


UNPROVED: dict[str, tuple[FoundBuild | None, SmokeState, str]] = {
    "no interpreter": (None, checked(), "found no /p"),
    "not built": (built(stamp=None), checked(), "has not been built"),
    "damaged": (built(damaged=["x.so"], damaged_count=1), checked(), "has 1 damaged files: x.so"),
    "other inputs": (built(torch="2.13.0"), checked(), "was compiled with torch"),
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


def images_of(aws: Aws, digest: str) -> list[Image]:
    return baked_images(aws, build=digest)


def test_an_image_is_made_once(aws: Aws, cloud: Cloud) -> None:
    (id,) = launch(aws)
    source = Source(id, build_digest(STAMP), "0.32.0")
    hand = Hand()

    assert carry(image_plan(aws, source, images_of(aws, source.digest), hand.clock), hand.said)

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
    assert carry(image_plan(aws, source, [], hand.clock), hand.said)
    (made,) = images_of(aws, source.digest)
    cloud.ec2.amis[made.id].state = "pending"
    hand.at[100] = lambda: setattr(cloud.ec2.amis[made.id], "state", "available")

    (step,) = image_plan(aws, source, images_of(aws, source.digest), hand.clock)
    assert carry([step], hand.said)

    assert step.reason == f"{made.id} is being made; wait for it"
    assert hand.time == 100
    assert cloud.actions().count("CreateImage") == 1


def test_an_image_that_fails_says_so(aws: Aws, cloud: Cloud) -> None:
    (id,) = launch(aws)
    source = Source(id, build_digest(STAMP), "0.32.0")
    hand = Hand()
    assert carry(image_plan(aws, source, [], Clock()), hand.said)
    (made,) = images_of(aws, source.digest)
    cloud.ec2.amis[made.id].state = "pending"
    plan = image_plan(aws, source, images_of(aws, source.digest), hand.clock)
    hand.at[10] = lambda: setattr(cloud.ec2.amis[made.id], "state", "failed")

    assert not carry(plan, hand.said)
    assert f"the image {made.id} is failed" in hand.said[-1]


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
