"""The plan of a run on its way to the host."""

import json
from dataclasses import asdict

import pytest

from files.bench.plan import PlanError, parse
from tests.bench.fake_server import FakeServer
from tests.bench.harnessed import plan_for

BAD_PLANS = {
    "not JSON": "{",
    "no method": '{"server": {}}',
    "unknown knob": '{"server": {"url": "u", "model": "m"}, "method": {"repeets": 3}}',
    "no repeats": '{"server": {"url": "u", "model": "m"}, "method": {"repeats": 0}}',
    "context of text": '{"server": {"url": "u", "model": "m"}, "method": {"contexts": ["64"]}}',
    "no model": '{"server": {"url": "u"}, "method": {}}',
    "a list": "[]",
}


@pytest.mark.parametrize("text", BAD_PLANS.values(), ids=BAD_PLANS)
def test_a_bad_plan_is_refused_before_anything_is_asked(text: str) -> None:
    with pytest.raises(PlanError):
        parse(text)


def test_a_plan_survives_its_journey(server: FakeServer) -> None:
    plan = plan_for(server, metrics="/metrics", prefix_counters=("q", "h"))
    there = parse(json.dumps(asdict(plan)))
    assert there == plan
    assert there.digest == plan.digest
