"""The planner of the swap file, and its line in fstab."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.steps import Refusal
from operations.swap import GIB, PAGE, fstab_with, plan

LINE = "/swapfile none swap sw 0 0\n"
ROOT = "LABEL=root / ext4 defaults 0 1\n"
SIZE = 16 * GIB
FILE = {
    "regular": True,
    "bytes": SIZE,
    "allocated": SIZE + 4096,
    "mode": "600",
    "owner": 0,
    "formatted": True,
}
SETTLED = {
    "memory": 8 * GIB,
    "file": FILE,
    "active": SIZE - PAGE,
    "fstab": ROOT + LINE,
    "free": 50 * GIB,
}

PLANS = {
    "as wanted": ({}, []),
    "enough memory": ({"memory": 32 * GIB, "file": None, "active": None, "fstab": ROOT}, []),
    "a host sold with 16 GiB": ({"memory": 16 * GIB, "active": None}, ["swap on /swapfile is off"]),
    "nothing there": (
        {"file": None, "active": None, "fstab": ROOT},
        ["/swapfile is missing", "swap on /swapfile is off", "/etc/fstab differs in content"],
    ),
    "truncated": (
        {"file": {**FILE, "bytes": GIB}, "active": None},
        [f"/swapfile has {GIB} bytes, wanted {SIZE}", "swap on /swapfile is off"],
    ),
    "too small and in use": (
        {"file": {**FILE, "bytes": GIB, "allocated": GIB}, "active": GIB - PAGE},
        [
            f"/swapfile has {GIB} bytes, wanted {SIZE}: swap on it is off first",
            f"/swapfile has {GIB} bytes, wanted {SIZE}",
            "swap on /swapfile is off",
        ],
    ),
    "with holes": (
        {"file": {**FILE, "allocated": GIB}, "active": None},
        [
            f"/swapfile has holes: {GIB} of {SIZE} bytes are on disk",
            "swap on /swapfile is off",
        ],
    ),
    "not formatted": (
        {"file": {**FILE, "formatted": False}, "active": None},
        ["/swapfile has no swap signature", "swap on /swapfile is off"],
    ),
    "readable by all": (
        {"file": {**FILE, "mode": "644"}},
        [
            "/swapfile has mode 644 and owner 0, wanted 600 and 0: whoever reads it reads memory",
        ],
    ),
    "swap off": ({"active": None}, ["swap on /swapfile is off"]),
    "a second line": ({"fstab": ROOT + LINE + LINE}, ["/etc/fstab differs in content"]),
}


@pytest.mark.parametrize(("found", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(found, reasons):
    steps = plan({**SETTLED, **found}, "/swapfile", size_gib=16, below_gib=16)
    assert [step.reason for step in steps] == reasons


def test_no_swap_is_wanted_of_no_size():
    assert plan({**SETTLED, "active": None}, "/swapfile", size_gib=0, below_gib=16) == []


def test_a_full_disk_is_refused_before_anything_is_touched():
    found = {**SETTLED, "file": None, "active": None, "free": 17 * GIB}
    step, *_ = plan(found, "/swapfile", size_gib=16, below_gib=16)
    assert isinstance(step, Refusal)
    assert "17.0 GiB to give, wanted 18" in step.message


def test_a_device_in_its_place_is_refused():
    found = {**SETTLED, "file": {**FILE, "regular": False}, "active": None}
    step, *_ = plan(found, "/swapfile", size_gib=16, below_gib=16)
    assert isinstance(step, Refusal)


FSTABS = {
    "empty": ("", LINE),
    "already there": (ROOT + LINE, ROOT + LINE),
    "aligned by hand": (f"/swapfile\tnone swap  sw 0 0\n{ROOT}",) * 2,
    "twice": (LINE + ROOT + LINE, ROOT + LINE),
    "other options": (f"{ROOT}/swapfile none swap noauto 0 0\n", ROOT + LINE),
    "no newline at the end": (ROOT.rstrip("\n"), ROOT + LINE),
    "commented out": (f"#{LINE}", f"#{LINE}{LINE}"),
    "another swap file": ("/swapfile2 none swap sw 0 0\n", "/swapfile2 none swap sw 0 0\n" + LINE),
}


@pytest.mark.parametrize(("text", "wanted"), FSTABS.values(), ids=FSTABS)
def test_fstab(text, wanted):
    assert fstab_with(text, "/swapfile") == wanted


@given(st.lists(st.sampled_from([LINE, ROOT, "# a comment\n", "\n", "/swapfile x y\n"])))
def test_fstab_settles_at_once_and_keeps_every_other_line(lines):
    once = fstab_with("".join(lines), "/swapfile")
    assert fstab_with(once, "/swapfile") == once
    assert once.count(LINE) == 1
    others = [line for line in lines if not line.startswith("/swapfile")]
    assert [line for line in once.splitlines(keepends=True) if line != LINE] == others
