"""The planner of packages, and what counts as the NVIDIA driver."""

import re

import pytest

from operations.apt import DRIVER_PACKAGES, plan

SETTLED = {"installed": {"git": "1:2.39"}, "unfinished": [], "damaged": [], "journals": []}
SETTLED["unmet"] = []

PLANS = {
    "all there": ({}, {"git"}, []),
    "two missing": (
        {},
        {"git", "ninja-build", "gcc"},
        [
            "the package index is read anew (not installed: gcc, ninja-build)",
            "not installed: gcc, ninja-build",
        ],
    ),
    "half configured": ({"unfinished": ["libc6"]}, {"git"}, ["dpkg was interrupted: libc6"]),
    "killed dpkg": (
        {"journals": ["0001"]},
        {"git"},
        ["dpkg was interrupted: 1 journal files remain"],
    ),
    "half unpacked": ({"damaged": ["gcc"]}, {"git"}, ["half unpacked: gcc"]),
    "dependencies forced away": (
        {"unmet": ["bash", "g++"]},
        {"git"},
        [
            "the package index is read anew (unmet dependencies: bash, g++)",
            "unmet dependencies: bash, g++",
        ],
    ),
    "mended before installing": (
        {"unfinished": ["a", "b"], "damaged": ["b"], "installed": {}},
        {"git"},
        [
            "dpkg was interrupted: a",
            "half unpacked: b",
            "the package index is read anew (not installed: git)",
            "not installed: git",
        ],
    ),
}


@pytest.mark.parametrize(("found", "names", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(found, names, reasons):
    assert [step.reason for step in plan({**SETTLED, **found}, names)] == reasons


def test_an_installation_waits_asks_nothing_and_upgrades_nothing():
    _, step = plan({**SETTLED, "installed": {}}, {"git"})
    words = step.command.get_raw_value()
    for option in ("DPkg::Lock::Timeout=600", "--no-upgrade", "--no-remove", "force-confold"):
        assert option in words
    assert words.endswith("-- git")


DRIVERS = ["cuda-drivers", "cuda-drivers-595", "nvidia-driver-595-server", "nvidia-open"]
DRIVERS += ["libnvidia-compute-595", "libcuda1", "nvidia-dkms-595-open", "nvidia-utils-595"]
DRIVERS += ["linux-modules-nvidia-595-aws", "nvidia-fabricmanager-595"]
OTHERS = ["cuda-toolkit-13-2", "cuda-nvcc-13-2", "libnvidia-container1", "libcublas-13-2"]
OTHERS += ["nvidia-container-toolkit", "libnvidia-container-tools", "cuda-cudart-dev-13-2"]


@pytest.mark.parametrize("name", DRIVERS)
def test_a_driver_package_is_recognised(name):
    assert re.fullmatch(DRIVER_PACKAGES, name)


@pytest.mark.parametrize("name", OTHERS)
def test_toolkit_and_container_packages_are_no_driver(name):
    assert not re.fullmatch(DRIVER_PACKAGES, name)
