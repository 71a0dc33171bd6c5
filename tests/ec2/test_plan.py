"""Planning for instances of one name, without AWS: what is done, in what order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desired.fleet import Fleet
from facts.ec2 import Instance
from operations.ec2_plan import (
    Await,
    Change,
    Launch,
    Plan,
    Planned,
    Reach,
    consent_given,
    plan_absent,
    plan_running,
    plan_stopped,
)
from operations.steps import Refusal
from tests.ec2.plans import deeds
from tests.ec2.samples import SEEN, fleet, instance

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
