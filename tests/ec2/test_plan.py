"""Planning for instances of one name, without AWS."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desired.fleet import Fleet
from facts.ec2 import Instance, Volume
from facts.ec2_network import Findings, Group
from facts.ec2_quota import Quota
from facts.ec2_survey import Survey
from operations.ec2_plan import (
    Await,
    Change,
    Launch,
    Plan,
    Planned,
    Reach,
    consent_given,
    differences,
    plan_absent,
    plan_running,
    plan_stopped,
)
from operations.steps import Refusal
from tests.ec2.provisioning import PARAMETER
from tests.ec2.samples import IMAGE, PLACE, SEEN, fleet, instance


def deeds(plan: Plan) -> list[object]:
    """Return the deeds of a plan; a launch as its count alone."""
    return [
        ("launch", entry.deed.count) if isinstance(entry.deed, Launch) else entry.deed
        for entry in plan
        if isinstance(entry, Planned)
    ]


RUNNING: dict[str, tuple[list[Instance], dict[str, Any], list[object]]] = {
    "nothing there": ([], {}, [("launch", 1), Reach(())]),
    "one runs": ([instance(1)], {}, []),
    "an ended one does not count": ([instance(1, "terminated")], {}, [("launch", 1), Reach(())]),
    "a stopped one is started": (
        [instance(1, "stopped")],
        {},
        [Change("start", ("i-1",)), Reach(("i-1",))],
    ),
    "a stopping one is waited for": (
        [instance(1, "stopping")],
        {},
        [Await(("i-1",), "stopped"), Change("start", ("i-1",)), Reach(("i-1",))],
    ),
    "one of two is there": ([instance(1)], {"count": 2}, [("launch", 1), Reach(("i-1",))]),
    "not reached yet": ([instance(100)], {}, [Reach(("i-100",))]),
    "pending": ([instance(100, "pending")], {}, [Reach(("i-100",))]),
    "a running one is kept before an older stopped one": (
        [instance(1, "stopped"), instance(2)],
        {"confirm": "vllm-g5g"},
        [Change("terminate", ("i-1",))],
    ),
    "none wanted": (
        [instance(1)],
        {"count": 0, "confirm": "vllm-g5g"},
        [Change("terminate", ("i-1",))],
    ),
    "another type stays": ([instance(1)], {"type": "g5g.xlarge"}, []),
    "another type is replaced": (
        [instance(1)],
        {"type": "g5g.xlarge", "replace": True},
        [("launch", 1), Reach(()), Change("terminate", ("i-1",))],
    ),
    "a stopped one to be replaced is not started": (
        [instance(1, "stopped")],
        {"type": "g5g.xlarge", "replace": True},
        [("launch", 1), Reach(()), Change("terminate", ("i-1",))],
    ),
}


@pytest.mark.parametrize(("found", "knobs", "expected"), RUNNING.values(), ids=RUNNING)
def test_plan_running(found: list[Instance], knobs: dict[str, Any], expected: list[object]) -> None:
    wanted = fleet(**knobs)
    seen = replace(SEEN, online=SEEN.online - {e.id for e in found if e.state != "running"})
    plan = plan_running(found, seen, wanted, consent_given(wanted, yes=False))
    assert deeds(plan) == expected


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


def test_plan_stopped() -> None:
    assert plan_stopped([]) == []
    assert plan_stopped([instance(1, "stopped"), instance(2, "terminated")]) == []
    assert deeds(plan_stopped([instance(1), instance(2, "pending")])) == [
        Await(("i-2",), "running"),
        Change("stop", ("i-1", "i-2")),
    ]
    (refusal,) = plan_stopped([instance(1), instance(2, market="spot")])
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith("i-2 (running): a one-time spot instance cannot be stopped")


def test_plan_absent() -> None:
    assert plan_absent([instance(1, "terminated")], "vllm-g5g", consent=False) == []
    (refusal,) = plan_absent([instance(1)], "vllm-g5g", consent=False)
    assert isinstance(refusal, Refusal)
    assert "--data confirm=vllm-g5g" in refusal.message
    plan = plan_absent([instance(1), instance(2, "stopped")], "vllm-g5g", consent=True)
    assert deeds(plan) == [Change("terminate", ("i-1", "i-2"))]


def apply(plan: Plan, found: Sequence[Instance], wanted: Fleet) -> list[Instance]:
    """Return the instances after EC2 has done what the plan says, and time has passed."""
    after = {entry.id: entry for entry in found}
    for entry in plan:
        assert isinstance(entry, Planned)
        match entry.deed:
            case Launch(count):
                first = len(after)
                made = [instance(first + n, type=wanted.type) for n in range(count)]
                after |= {fresh.id: fresh for fresh in made}
            case Await(ids, state):
                after |= {id: replace(after[id], state=state) for id in ids}
            case Change(verb, ids):
                now = {"start": "running", "stop": "stopped", "terminate": "terminated"}[verb]
                assert verb != "start" or all(after[id].state == "stopped" for id in ids)
                assert verb != "stop" or all(after[id].state == "running" for id in ids)
                after |= {id: replace(after[id], state=now) for id in ids}
    return [
        replace(entry, state="running") if entry.state == "pending" else entry
        for entry in after.values()
    ]


states = st.sampled_from(["pending", "running", "stopping", "stopped", "terminated"])
kinds = st.sampled_from(["g5g.xlarge", "g5g.2xlarge"])
founds = st.lists(st.tuples(states, kinds), max_size=6).map(
    lambda entries: [instance(n, s, type=k) for n, (s, k) in enumerate(entries)]
)


@given(founds, st.integers(0, 5), st.booleans())
def test_after_a_plan_is_carried_out_there_is_nothing_left_to_do(
    found: list[Instance], count: int, replacing: bool
) -> None:
    wanted = fleet(count=count, replace=replacing, confirm="vllm-g5g")

    after = apply(plan_running(found, SEEN, wanted, consent=True), found, wanted)

    running = [entry for entry in after if entry.state == "running"]
    assert len(running) == count
    assert plan_running(after, SEEN, wanted, consent=True) == []
    assert not replacing or {entry.type for entry in running} <= {wanted.type}


@given(founds)
def test_stopping_twice_stops_once(found: list[Instance]) -> None:
    after = apply(plan_stopped(found), found, fleet())
    assert "running" not in {entry.state for entry in after}
    assert plan_stopped(after) == []


@given(founds, st.integers(0, 5), st.booleans())
def test_without_consent_and_replace_nothing_is_terminated(
    found: list[Instance], count: int, consent: bool
) -> None:
    plan = plan_running(found, SEEN, fleet(count=count), consent=False)
    assert not [d for d in deeds(plan) if isinstance(d, Change) and d.verb == "terminate"]
