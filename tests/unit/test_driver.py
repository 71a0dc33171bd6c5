"""The planner that keeps the driver where it is."""

import pytest

from operations.driver import plan

PLANS = {
    "no driver package": ({}, []),
    "held": ({"libnvidia-compute-595": True}, []),
    "let go": (
        {"libnvidia-compute-595:arm64": False, "nvidia-driver-595": True, "nvidia-utils": False},
        ["not held: libnvidia-compute-595:arm64, nvidia-utils"],
    ),
}


@pytest.mark.parametrize(("held", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(held, reasons):
    assert [step.reason for step in plan(held)] == reasons


def test_the_hold_waits_for_apts_locks_and_names_what_it_holds():
    (step,) = plan({"nvidia-driver-595": False})
    assert step.command.get_raw_value().endswith("apt-mark hold -- nvidia-driver-595")
