"""What a vLLM build fetches is found in its tree, and cmake takes it from where it was put."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from files.build.pinned_sources import COMMIT, TAG, Source, handed_over, sources_of
from tests.versions.released import BY_DEFAULT, Released, each
from upkeep.environment import interpreter

# Fetched for a CPU alone, and hosts without a GPU are given kernels that are compiled already.
LEFT_TO_CMAKE = {
    "cmake/cpu_extension.cmake": {
        "https://github.com/ARM-software/ComputeLibrary.git",
        "https://github.com/oneapi-src/oneDNN.git",
    }
}
EVERY_VERSION = {
    *("cutlass", "triton_kernels", "deepgemm", "fmha_sm100", "flashmla", "flashkda"),
    *("qutlass", "tml_fa4", "vllm-flash-attn"),
}
FIXED_URL = re.compile(r'GIT_REPOSITORY\s+"?(https?://[^\s"]+)')

each_version = pytest.mark.parametrize("number", each(*BY_DEFAULT))


def sources(released: Released) -> list[Source]:
    found: list[Source] = sources_of(str(released.tree))
    return found


@each_version
def test_every_repository_is_found_or_left_to_cmake_for_a_reason(
    number: str, released: Released
) -> None:
    found = {source.url for source in sources(released)}
    paths = [released.tree / "CMakeLists.txt", *released.tree.glob("cmake/**/*.cmake")]
    for path in paths:
        text, name = path.read_text(), str(path.relative_to(released.tree))
        fixed = set(FIXED_URL.findall(text))
        assert fixed <= found | LEFT_TO_CMAKE.get(name, set()), name
        if name not in LEFT_TO_CMAKE:
            # One whose address is a variable is one source too.
            known = [source for source in sources(released) if source.url in text]
            assert len(known) == len(re.findall(r"^\s*GIT_REPOSITORY\s", text, re.M)), name


@each_version
def test_every_source_is_pinned_and_can_be_handed_over(number: str, released: Released) -> None:
    found = {source.name: source for source in sources(released)}
    assert set(found) - {"deepselect"} == EVERY_VERSION
    for source in found.values():
        assert source.obstacle == ""
        assert COMMIT.fullmatch(source.revision) or TAG.fullmatch(source.revision)
        assert source.url.startswith("https://github.com/")
    at_once = {name: source.variable for name, source in found.items() if source.variable}
    assert at_once == {"deepgemm": "DEEPGEMM_SRC_DIR", "qutlass": "QUTLASS_SRC_DIR"}
    assert found["flashkda"].submodules == ("cutlass",)
    assert found["vllm-flash-attn"].submodules is None


@each_version
def test_the_build_passes_on_what_it_is_handed(number: str, released: Released) -> None:
    setup = released.text("setup.py")
    assert 'other_cmake_args = os.environ.get("CMAKE_ARGS")' in setup
    assert "cmake_args += other_cmake_args.split()" in setup


# vLLM's own cmake files, on a project that has just what they ask for. No GPU, no compiler of its.
PROJECT = """
cmake_minimum_required(VERSION 3.26)
project(vllm LANGUAGES CXX)
include(FetchContent)
set(VLLM_TARGET_DEVICE cuda)
set(VLLM_GPU_LANG CUDA)
set(CMAKE_CUDA_COMPILER_VERSION 13.2)
set(CUDA_ARCHS 7.5)
include(${TREE}/cmake/utils.cmake)
include(${CMAKE_SOURCE_DIR}/cutlass.cmake)
message(STATUS "cutlass is available at ${cutlass_SOURCE_DIR}")
"""
CUTE = "flash_attn/cute/interface.py"


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def places(released: Released, tmp_path: Path) -> dict[Source, str]:
    """Each source as a folder with what the cmake files read of it."""
    places = {source: str(tmp_path / "sources" / source.name) for source in sources(released)}
    for path in map(Path, places.values()):
        put(path / "flash_mla" / "flash_mla_interface.py")
        put(path / CUTE, "import flash_attn.cute.other\n")
        put(path / "python/triton_kernels/triton_kernels/matmul.py")
    return places


@pytest.fixture
def project(released: Released, tmp_path: Path) -> Path:
    text = released.text("CMakeLists.txt")
    stanza = re.search(r"^ *SET\(CUTLASS_ENABLE.*?MakeAvailable\(cutlass\)$", text, re.M | re.S)
    assert stanza is not None
    included = re.findall(r"include\((cmake/external_projects/.+)\)", text)
    put(tmp_path / "project" / "cutlass.cmake", stanza[0])
    put(
        tmp_path / "project" / "CMakeLists.txt",
        PROJECT + "\n".join(f"include(${{TREE}}/{path})" for path in included),
    )
    return tmp_path / "project"


def cmake(*arguments: str | Path, environment: dict[str, str]) -> str:
    """Run cmake as the build does, on a machine whose git fetches nothing."""
    tools = interpreter().parent
    done = subprocess.run(
        [tools / "cmake", *arguments],
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.sm75
@each_version
def test_cmake_takes_every_source_from_its_place(
    number: str, released: Released, places: dict[Source, str], project: Path, tmp_path: Path
) -> None:
    environment = handed_over(places)
    options = [f"-DTREE={released.tree}", "-DGIT_EXECUTABLE=/bin/false", "-GNinja"]
    options += shlex.split(environment["CMAKE_ARGS"])
    build = tmp_path / "build"
    said = cmake("-S", project, "-B", build, *options, environment=environment)
    told = re.findall(r"(?:is available at|using local DEEPGEMM_SRC_DIR:) (\S+)", said)
    inner = "python/triton_kernels/triton_kernels"
    assert {path.rstrip("/") for path in told} == {
        f"{path}/{inner}" if source.name == "triton_kernels" else path
        for source, path in places.items()
    }
    assert list(build.glob("_deps/*-src")) == []

    component, prefix = "_vllm_fa4_cutedsl_C", tmp_path / "installed"
    cmake("--install", build, "--prefix", prefix, "--component", component, environment={})
    cute = prefix / "vllm/vllm_flash_attn/cute"
    assert not cute.is_symlink(), "as it would be under VLLM_FLASH_ATTN_SRC_DIR"
    assert (cute / "interface.py").read_text() == "import vllm.vllm_flash_attn.cute.other\n"
