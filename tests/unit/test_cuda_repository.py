"""The planner of NVIDIA's apt repository."""

from typing import Any

import pytest

from operations.cuda_repository import KEYRING, Repository, plan
from operations.cuda_toolkit import Toolkit
from operations.steps import Refusal

BASE = "https://developer.download.nvidia.com/compute/cuda/repos"
URL = f"{BASE}/ubuntu2404/sbsa/"
OWN = "/etc/apt/sources.list.d/cuda-ubuntu2404-sbsa.list"
LEGACY = "/etc/apt/sources.list.d/cuda.list"
LINE = f"deb [signed-by={KEYRING}] {URL} /\n"
KEY = "EB693B3035CD5710E231E123A4B469963BF863CC"
OLD_KEY = "AE09FE4BBD223A84B2CCFCE3F60F4B3D7FA2AF80"
REPOSITORY = Repository(BASE, "1.1-1", {"ubuntu2404/sbsa": "6e" * 32}, KEY)
TOOLKIT = Toolkit("cuda-toolkit-13-2")
WHOLE = {"installed": "13.2.1-1", "nvcc": "13.2", "missing": [], "owners": []}
ABSENT = {"installed": None, "nvcc": None, "missing": ["bin/ptxas"], "owners": []}


def source_files(files):
    rights = {"kind": "file", "sha256": "0", "mode": "644", "user": "root", "group": "root"}
    return {path: {**rights, "content": content} for path, content in files.items()}


SETTLED = {
    "toolkit": WHOLE,
    "architecture": "arm64",
    "release": {"ID": "ubuntu", "VERSION_ID": "24.04"},
    "sources": source_files({OWN: LINE}),
    "keyring": "1.1-1",
    "keyring_is_older": False,
    "fingerprints": [KEY],
}
NOTHING: dict[str, Any] = {"toolkit": ABSENT, "sources": {}, "keyring": None, "fingerprints": []}

PLANS = {
    "as wanted": ({}, []),
    "a fresh host": (
        NOTHING,
        [f"{OWN} must name {URL} alone", "the cuda-keyring package is not installed"],
    ),
    "an image with the toolkit and no repository": ({**NOTHING, "toolkit": WHOLE}, []),
    "an image with the toolkit and a list of its own": (
        {**NOTHING, "toolkit": WHOLE, "sources": source_files({LEGACY: f"deb {URL} /\n"})},
        [],
    ),
    "an image with the toolkit and a list whose key is gone": (
        {**NOTHING, "toolkit": WHOLE, "sources": source_files({OWN: LINE})},
        ["the cuda-keyring package is not installed"],
    ),
    "an image with the toolkit and two lists in conflict": (
        {
            **NOTHING,
            "toolkit": WHOLE,
            "sources": source_files({LEGACY: f"deb {URL} /\n", OWN: LINE}),
        },
        [
            f"{LEGACY} names {URL}, which belongs in {OWN}",
            "the cuda-keyring package is not installed",
        ],
    ),
    "a second list": (
        {"sources": source_files({LEGACY: f"deb {URL} /\n", OWN: LINE})},
        [f"{LEGACY} names {URL}, which belongs in {OWN}"],
    ),
    "another architecture's list": (
        {
            "sources": source_files(
                {LEGACY: f"deb {BASE}/ubuntu2404/x86_64/ /\n", OWN: LINE},
            )
        },
        [f"{LEGACY} names {BASE}/ubuntu2404/x86_64/, which belongs in {OWN}"],
    ),
    "a mirror's list": (
        {"sources": source_files({OWN: LINE.replace("developer.download.nvidia.com", "mirror")})},
        [f"{OWN} must name {URL} alone"],
    ),
    "unsigned": (
        {"sources": source_files({OWN: f"deb [trusted=yes] {URL} /\n"})},
        [f"{OWN} must name {URL} alone"],
    ),
    "list gone, package there": ({"sources": {}}, [f"{OWN} must name {URL} alone"]),
    "an older keyring": (
        {"keyring": "1.0-1", "keyring_is_older": True, "fingerprints": [OLD_KEY]},
        ["cuda-keyring is 1.0-1, wanted 1.1-1"],
    ),
    "a newer keyring with the key": ({"keyring": "1.2-1"}, []),
    "keyring file gone": ({"fingerprints": []}, [f"{KEYRING} holds no key, wanted {KEY}"]),
    "keyring file replaced": (
        {"fingerprints": [OLD_KEY]},
        [f"{KEYRING} holds {OLD_KEY}, wanted {KEY}"],
    ),
}


@pytest.mark.parametrize(("found", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(found, reasons):
    steps = plan({**SETTLED, **found}, REPOSITORY, TOOLKIT)
    assert [step.reason for step in steps] == reasons


REFUSALS = {
    "no repository for it": ({"architecture": "riscv64"}, "for the architecture 'riscv64'"),
    "a newer keyring without the key": (
        {"keyring": "2.0-1", "fingerprints": [OLD_KEY]},
        "Has NVIDIA changed its key?",
    ),
    "no checksum pinned": (
        {**NOTHING, "release": {"ID": "debian", "VERSION_ID": "12"}},
        "for debian12/sbsa is pinned",
    ),
}


@pytest.mark.parametrize(("found", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusal(found, message):
    *_, step = plan({**SETTLED, **found}, REPOSITORY, TOOLKIT)
    assert isinstance(step, Refusal)
    assert message in step.message


def test_the_keyring_is_checked_before_dpkg_sees_it():
    (step,) = plan({**SETTLED, "toolkit": ABSENT, "keyring": None}, REPOSITORY, TOOLKIT)
    command = step.command.get_raw_value()
    fetch, unpack = command.index(f"{URL}cuda-keyring_1.1-1_all.deb"), command.index("--install")
    assert fetch < command.index("6e" * 32) < unpack
