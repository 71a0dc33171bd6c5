"""Which version, which patches, which lock."""

import re
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version as Number

import versions
from files.build.refreshed_wheel import is_python_only
from upkeep.locks import LOCKS
from versions import (
    CPU_VERSIONS,
    PATCHES,
    SUPPORTED,
    Patch,
    UnknownVersion,
    find,
    kernels_lock_of,
    lock_of,
    patches_for,
)

CLAMP = "turing-tile-clamp.patch"
TURING = [CLAMP, "no-fa3-extension.patch", "no-fa2-kernels.patch"]
CHOICES = {
    "a T4G": ("0.32.0", "cuda", (7, 5), TURING),
    "a V100": ("0.32.0", "cuda", (7, 0), TURING),
    "an A10G needs none": ("0.32.0", "cuda", (8, 6), []),
    "the CPU rehearses the clamp": ("0.32.0", "cpu", None, [CLAMP, "cpu-slot-mapping.patch"]),
    "the CPU before it broke": ("0.31.0", "cpu", None, [CLAMP]),
    "the CPU after it was mended": ("0.33.0", "cpu", None, [CLAMP]),
    "a release candidate": ("0.27.2rc0", "cuda", (7, 5), TURING),
    "a version that nobody has seen": ("0.40.0", "cuda", (7, 5), TURING),
}


@pytest.mark.parametrize(("number", "device", "capability", "files"), CHOICES.values(), ids=CHOICES)
def test_patches(
    number: str, device: versions.Device, capability: tuple[int, int] | None, files: list[str]
) -> None:
    assert [patch.file for patch in patches_for(number, device, capability)] == files


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.file)
def test_a_patch_compiles_nothing_exactly_where_it_changes_the_packages_python(
    patch: Patch,
) -> None:
    text = (LOCKS.parent / "patches" / patch.file).read_text()
    changed = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
    assert changed
    assert is_python_only(changed) == (patch.half == "python")


def test_the_default_is_the_version_that_served_on_hardware() -> None:
    assert find(versions.DEFAULT).evidence == "field"
    assert find(versions.DEFAULT).tag == "v0.27.2rc0"


def test_versions_are_listed_in_order() -> None:
    assert list(SUPPORTED) == sorted(SUPPORTED, key=Number)


def test_an_unlisted_version_is_refused_by_name() -> None:
    with pytest.raises(
        UnknownVersion, match=r"'0\.34\.0' is not one of .*0\.33\.0.*allow_unlisted"
    ):
        find("0.34.0")


def test_an_unlisted_version_takes_over_what_holds_below_it_and_claims_nothing() -> None:
    tried = find("0.31.7", allow_unlisted=True)
    below = SUPPORTED["0.31.0"]
    taken_over = {field.name for field in fields(tried)} - {
        *("number", "sdist_sha256", "flash_attention", "evidence")
    }
    assert all(getattr(tried, name) == getattr(below, name) for name in taken_over)
    assert (tried.tag, tried.sdist_sha256, tried.flash_attention, tried.evidence) == (
        *("v0.31.7", None, None, "source"),
    )


def test_a_version_older_than_all_takes_over_from_the_oldest() -> None:
    assert find("0.20.0", allow_unlisted=True).transformers_cap == "<5.15"


@given(st.text(max_size=12))
def test_whatever_is_asked_for_is_found_or_refused_by_name(number: str) -> None:
    try:
        found = find(number, allow_unlisted=True)
    except UnknownVersion as refusal:
        told = str(refusal)
        assert repr(number) in told
    else:
        assert found.number == number


def test_each_lock_that_is_promised_is_there() -> None:
    promised = {lock_of(number, "cuda") for number in SUPPORTED}
    promised |= {lock_of(number, "cpu") for number in CPU_VERSIONS}
    promised |= {kernels_lock_of(number) or "" for number in CPU_VERSIONS}
    assert promised <= {path.name for path in LOCKS.glob("*.txt")}


def test_a_version_that_is_not_listed_is_locked_as_the_nearest() -> None:
    assert lock_of("0.34.0", "cuda") == "0.33.0-cuda.txt"


def test_a_version_without_kernels_for_the_cpu_has_no_lock_there() -> None:
    with pytest.raises(UnknownVersion, match=r"'0\.33\.0' has no CPU kernels .* one of 0\.32\.0"):
        lock_of("0.33.0", "cpu")
    assert kernels_lock_of("0.33.0") is None


def test_a_patch_says_in_words_which_releases_it_is_for() -> None:
    words = {patch.file: patch.releases for patch in PATCHES}
    assert words["cpu-slot-mapping.patch"] == "0.32.0"
    assert words["turing-tile-clamp.patch"] == "0.27.2rc0 to 0.33.0"
