"""The planner of the CUDA toolkit."""

import pytest

from operations.cuda_toolkit import GIB, Toolkit, plan
from operations.steps import Refusal

TOOLKIT = Toolkit("cuda-toolkit-13-2")
NVCC = "/usr/local/cuda-13.2/bin/nvcc"
WHOLE = {"installed": "13.2.1-1", "nvcc": "13.2", "missing": [], "owners": []}
ABSENT = {"installed": None, "nvcc": None, "missing": ["bin/ptxas"], "owners": []}
STATE = {"toolkit": WHOLE, "touches": None, "free": 50 * GIB}

PLANS = {
    "whole": ({}, []),
    "carried by the image": ({"toolkit": {**WHOLE, "installed": None}}, []),
    "absent": (
        {"toolkit": ABSENT},
        [
            f"the package index is read anew ({NVCC} does not run)",
            "cuda-toolkit-13-2 is not installed",
            f"{NVCC} must be release 13.2",
        ],
    ),
    "ptxas deleted": (
        {"toolkit": {**WHOLE, "missing": ["bin/ptxas"], "owners": ["cuda-nvcc-13-2"]}},
        [
            "the package index is read anew (missing: bin/ptxas)",
            "unpacked again: cuda-nvcc-13-2, cuda-toolkit-13-2",
            f"{NVCC} must be release 13.2",
        ],
    ),
    "another release in its place": (
        {"toolkit": {**WHOLE, "nvcc": "12.8", "owners": []}},
        [
            f"the package index is read anew ({NVCC} is 12.8, wanted 13.2)",
            "unpacked again: cuda-toolkit-13-2",
            f"{NVCC} must be release 13.2",
        ],
    ),
}


@pytest.mark.parametrize(("found", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(found, reasons):
    assert [step.reason for step in plan({**STATE, **found}, TOOLKIT)] == reasons


REFUSALS = {
    "a driver would come": (
        {"toolkit": ABSENT, "touches": ["cuda-nvcc-13-2", "cuda-drivers", "libnvidia-gl-595"]},
        "would touch the driver: cuda-drivers, libnvidia-gl-595",
    ),
    "too little space": ({"toolkit": ABSENT, "free": 3 * GIB}, "3.0 GiB are free"),
}


@pytest.mark.parametrize(("found", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusal(found, message):
    (step,) = plan({**STATE, **found}, TOOLKIT)
    assert isinstance(step, Refusal)
    assert message in step.message


@pytest.mark.parametrize("package", ["cuda", "cuda-drivers", "cuda-13-2", "cuda-toolkit", "--x"])
def test_a_package_that_may_bring_a_driver_is_no_toolkit(package):
    with pytest.raises(ValueError, match="must be named as in cuda-toolkit-13-2"):
        Toolkit(package)
