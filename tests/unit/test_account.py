"""The planner of the service's system account."""

import pytest

from operations.account import plan
from operations.steps import Refusal

VLLM = {
    "uid": 998,
    "group": "vllm",
    "home": "/var/lib/vllm-g5g",
    "shell": "/usr/sbin/nologin",
    "groups": [],
    "locked": True,
}
GROUPS = {"vllm": False, "video": True}

PLANS = {
    "missing": (
        None,
        (),
        "useradd --system --user-group --home-dir /var/lib/vllm-g5g --no-create-home "
        "--shell /usr/sbin/nologin -- vllm",
    ),
    "missing, with groups": (
        None,
        ("video",),
        "useradd --system --user-group --groups video --home-dir /var/lib/vllm-g5g "
        "--no-create-home --shell /usr/sbin/nologin -- vllm",
    ),
    "as wanted": (VLLM, (), ""),
    "other memberships stay": ({**VLLM, "groups": ["docker", "video"]}, ("video",), ""),
    "home moved": ({**VLLM, "home": "/"}, (), "usermod --home /var/lib/vllm-g5g -- vllm"),
    "can log in": (
        {**VLLM, "shell": "/bin/bash"},
        (),
        "usermod --shell /usr/sbin/nologin -- vllm",
    ),
    "has a password": ({**VLLM, "locked": False}, (), "usermod --lock -- vllm"),
    "left a group": (VLLM, ("video",), "usermod --append --groups video -- vllm"),
}


@pytest.mark.parametrize(("account", "groups", "commands"), PLANS.values(), ids=PLANS)
def test_plan(account, groups, commands):
    state = {"account": account, "group_exists": GROUPS}
    steps = plan(state, "vllm", "/var/lib/vllm-g5g", groups)
    assert "\n".join(step.command.get_raw_value() for step in steps) == commands


def test_a_group_that_outlived_its_user_is_used_again():
    state = {"account": None, "group_exists": {"vllm": True}}
    (step,) = plan(state, "vllm", "/h", ())
    assert step.command.get_raw_value().startswith("useradd --system --gid vllm --home-dir")


REFUSALS = {
    "a person's account": ({**VLLM, "uid": 1001}, (), "exists with uid 1001"),
    "root": ({**VLLM, "uid": 0}, (), "exists with uid 0"),
    "no such group": (VLLM, ("render",), "no such group"),
}


@pytest.mark.parametrize(("account", "groups", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusal(account, groups, message):
    state = {"account": account, "group_exists": {**GROUPS, "render": False}}
    (step,) = plan(state, "vllm", "/var/lib/vllm-g5g", groups)
    assert isinstance(step, Refusal)
    assert message in step.message
