"""What a finished build must show, asked of an installed package that is small enough to break."""

import sys

import pytest

from files.build.check_build import check

TORCH = """
class cuda:
    get_arch_list = staticmethod(lambda: ["sm_75", "sm_80"])
"""
WANTED = {
    "artifacts": ["_C*.so"],
    "extensions": ["vllm.core"],
    "gpu": False,
    "target": "sm_75",
    "kernels": ["_C*.so"],
    "attention": None,
}
# As NVIDIA's tool prints it. [measured, 13.1]
LISTING = "ELF file    1: k.{}.cubin\\nELF file    2: k.sm_80.cubin\\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An installed vllm and torch as far as the checks look, and a cuobjdump."""
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text('__version__ = "0.32.0"\n')
    (package / "core.py").write_text("")
    (package / "_C.abi3.so").write_bytes(b"code")
    (tmp_path / "torch.py").write_text(TORCH)
    installs_torch(tmp_path, "2.12.0+cu132")
    lists(tmp_path, "sm_75")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return tmp_path


def installs_torch(site, version):
    metadata = site / "torch-2.dist-info" / "METADATA"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")


def lists(site, target):
    tool = site / "cuobjdump"
    tool.write_text(f"#!/bin/sh\nprintf '{LISTING.format(target)}'\n")
    tool.chmod(0o755)


def checked(site, **changes):
    wanted = {**WANTED, "cuobjdump": str(site / "cuobjdump"), **changes}
    return check(sys.executable, "0.32.0", "2.12.0+cu132", wanted)


def test_a_whole_build_is_told_with_what_could_not_be_checked(site):
    found = checked(site)
    assert list(found["artifacts"]) == [str(site / "vllm/_C.abi3.so")]
    assert found["extensions"] == ["vllm.core"]
    assert found["code"] == {"_C.abi3.so": 1}
    assert found["unchecked"] == ["a product on the GPU", "attention against torch"]


def test_a_toolkit_without_the_tool_is_no_fault_and_said(site):
    found = checked(site, cuobjdump="/nowhere/cuobjdump")
    assert "code" not in found
    assert "code for sm_75 (no /nowhere/cuobjdump)" in found["unchecked"]


def torch_without_the_gpu(site):
    (site / "torch.py").write_text(TORCH.replace('"sm_75", ', ""))


def an_extension_that_does_not_load(site):
    (site / "vllm/core.py").write_text("raise ImportError('undefined symbol: _ZN3c10')")


FAULTS = {
    "another vLLM": (
        lambda site: (site / "vllm/__init__.py").write_text('__version__ = "0.31.0"\n'),
        "installed vLLM says that it is 0.31.0, wanted 0.32.0",
    ),
    "another torch": (
        lambda site: installs_torch(site, "2.13.0+cu132"),
        r"torch is 2\.13\.0\+cu132 after the installation, it was 2\.12\.0\+cu132 before",
    ),
    "a torch without the GPU": (torch_without_the_gpu, "torch has code for sm_80, wanted sm_75"),
    "a library is missing": (
        lambda site: (site / "vllm/_C.abi3.so").unlink(),
        r"the build lacks _C\*\.so in .*/vllm",
    ),
    "an extension does not load": (
        an_extension_that_does_not_load,
        "vllm.core does not load: ImportError: undefined symbol: _ZN3c10",
    ),
    "kernels of another GPU": (
        lambda site: lists(site, "sm_90"),
        r"no code for sm_75 in _C\.abi3\.so: the GPU could not run it",
    ),
}


@pytest.mark.parametrize(("damage", "told"), FAULTS.values(), ids=FAULTS)
def test_a_build_that_is_not_whole_is_named(site, damage, told):
    damage(site)
    with pytest.raises(SystemExit, match=told):
        checked(site)
