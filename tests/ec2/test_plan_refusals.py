"""Launches that cannot work, and how an instance differs from what is wanted."""

from dataclasses import replace
from typing import Any

import pytest

from facts.ec2 import Volume
from facts.ec2_network import Findings, Group
from facts.ec2_quota import Quota
from facts.ec2_survey import Survey
from operations.ec2_plan import Reach, differences, plan_running
from operations.steps import Refusal
from tests.ec2.plans import deeds
from tests.ec2.provisioning import PARAMETER
from tests.ec2.samples import IMAGE, PLACE, SEEN, fleet, instance


def _small(**quota: int) -> Survey:
    return replace(SEEN, quotas={"on-demand": Quota("on-demand", quota["limit"], quota["used"])})


REFUSED: dict[str, tuple[Survey, dict[str, Any], str]] = {
    "quota": (
        _small(limit=12, used=8),
        {"market": "on-demand"},
        '"Running On-Demand G and VT instances" (L-DB2E81BA) allows 12 vCPUs, 8 are in use and 8 '
        "more are needed: ask for at least 16",
    ),
    "architecture": (
        replace(SEEN, image=replace(IMAGE, architecture="x86_64")),
        {},
        "is for x86_64, the instance type is arm64",
    ),
    "driver": (
        replace(SEEN, image=replace(IMAGE, name="Deep Learning ARM64 Base AMI (Ubuntu 24.04)")),
        {},
        "does not say that it has the NVIDIA driver",
    ),
    "image gone": (
        replace(SEEN, image=replace(IMAGE, state="deregistered")),
        {},
        "is deregistered",
    ),
    "image too large": (SEEN, {"volume_gib": 40}, "needs 60 GiB, volume_gib is 40"),
    "no subnet": (replace(SEEN, places=()), {}, "no such subnet here"),
    "no zone": (
        replace(SEEN, offering=frozenset({"us-east-1d"})),
        {},
        "g5g.2xlarge is offered in us-east-1d, and no subnet given lies there",
    ),
    "no address": (replace(SEEN, places=(replace(PLACE, free=0),)), {}, "out of addresses"),
    "no group": (SEEN, {"security_groups": "sg-0123456789abcdef0"}, "there is no security group"),
    "group of another network": (
        replace(SEEN, groups=(Group("sg-0123456789abcdef0", "vpc-2", open=False),)),
        {"security_groups": "sg-0123456789abcdef0"},
        "is of vpc-2, the subnets are of vpc-1",
    ),
    "profile": (
        replace(SEEN, profile=Findings(("there is no instance profile",))),
        {},
        "there is no",
    ),
}


@pytest.mark.parametrize(("seen", "knobs", "words"), REFUSED.values(), ids=REFUSED)
def test_a_launch_that_cannot_work_is_refused(
    seen: Survey, knobs: dict[str, Any], words: str
) -> None:
    (refusal,) = plan_running([], seen, fleet(**knobs), consent=False)
    assert isinstance(refusal, Refusal)
    assert words in refusal.message
    # What stands against a launch is no reason against an instance that is there already.
    assert plan_running([instance(1)], seen, fleet(), consent=False) == []


def test_all_that_stands_against_a_launch_is_said_at_once() -> None:
    seen = replace(SEEN, image=replace(IMAGE, architecture="x86_64"), places=())
    (refusal,) = plan_running([], seen, fleet(), consent=False)
    assert isinstance(refusal, Refusal)
    assert "is for x86_64" in refusal.message
    assert "no such subnet" in refusal.message


def test_other_families_do_not_count_against_the_gpu_quota() -> None:
    none = replace(SEEN, quotas={"on-demand": Quota("on-demand", 0, 0)})
    plan = plan_running([], none, fleet(type="c7g.large", market="on-demand"), consent=False)
    assert deeds(plan) == [("launch", 1), Reach(())]


def test_with_a_refusal_nothing_else_is_planned() -> None:
    seen = replace(SEEN, places=())
    plan = plan_running([instance(1, "stopped")], seen, fleet(count=2), consent=True)
    assert [type(entry) for entry in plan] == [Refusal]


DIFFERENT: dict[str, tuple[dict[str, Any], Volume, dict[str, Any], str]] = {
    "type": (
        {"type": "g5g.xlarge"},
        Volume(150, "gp3", True),
        {},
        "type is g5g.xlarge, wanted g5g.2xlarge",
    ),
    "market": (
        {"market": "spot"},
        Volume(150, "gp3", True),
        {"market": "on-demand"},
        "market is spot, wanted on-demand",
    ),
    "either market": ({"market": "spot"}, Volume(150, "gp3", True), {}, ""),
    "profile": (
        {"profile": ""},
        Volume(150, "gp3", True),
        {},
        "instance_profile is , wanted vllm-g5g",
    ),
    "image": (
        {"source": "build:12345678"},
        Volume(150, "gp3", True),
        {},
        f"image is build:12345678, wanted {PARAMETER}",
    ),
    "image unknown": ({"source": ""}, Volume(150, "gp3", True), {}, ""),
    "volume": ({}, Volume(100, "gp3", True), {}, "volume_gib is 100, wanted 150"),
    "a larger volume will do": ({}, Volume(500, "gp3", True), {}, ""),
    "encryption": (
        {},
        Volume(150, "gp3", False),
        {},
        "root volume is not encrypted, wanted encrypted",
    ),
    "zone": (
        {},
        Volume(150, "gp3", True),
        {"zones": "us-east-1b,us-east-1c"},
        "zone is us-east-1a, wanted us-east-1b or us-east-1c",
    ),
    "groups": (
        {"groups": frozenset({"sg-1"})},
        Volume(150, "gp3", True),
        {"security_groups": "sg-0123456789abcdef0"},
        "security_groups is sg-1, wanted sg-0123456789abcdef0",
    ),
}


@pytest.mark.parametrize(("changes", "volume", "knobs", "text"), DIFFERENT.values(), ids=DIFFERENT)
def test_differences(
    changes: dict[str, Any], volume: Volume, knobs: dict[str, Any], text: str
) -> None:
    found = differences(instance(1, **changes), volume, fleet(**knobs), PARAMETER)
    assert found == ([text] if text else [])
