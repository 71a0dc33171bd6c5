"""What a build for 7.5 no longer compiles, and what it still does."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.versions.released import BY_DEFAULT, Released, each
from upkeep.environment import interpreter
from versions import Patch, patches_for

CMAKE = "cmake/external_projects/vllm_flash_attn.cmake"


@pytest.mark.parametrize("number", each(*BY_DEFAULT))
def test_only_flash_attention_3_leaves_the_extensions(
    number: str, released: Released, patched: Callable[[list[Patch]], Path]
) -> None:
    def extensions(text: str) -> set[str]:
        return set(re.findall(r'CMakeExtension\(name="([\w.]+)"', text))

    tree = patched(patches_for(number, "cuda", (7, 5)))
    gone = extensions(released.text("setup.py")) - extensions((tree / "setup.py").read_text())
    assert gone == {"vllm.vllm_flash_attn._vllm_fa3_C"}


FLASH_ATTENTION = {
    # As the real one: the API relative to its folder, the kernels by a glob. [source]
    "CMakeLists.txt": """
        file(GLOB KERNELS "csrc/flash_attn/src/flash_fwd_*.cu")
        set_source_files_properties(${KERNELS} PROPERTIES LANGUAGE CXX)
        add_library(_vllm_fa2_C MODULE csrc/flash_attn/flash_api.cpp ${KERNELS})
    """,
    "csrc/flash_attn/flash_api.cpp": "int api() { return 0; }",
    "csrc/flash_attn/src/flash_fwd_hdim64.cu": "what no compiler takes",
    "vllm_flash_attn/layers/rotary.py": "",
}
PROJECT = """
    cmake_minimum_required(VERSION 3.26)
    project(flash LANGUAGES CXX)
    include(FetchContent)
    include(${VLLM_CMAKE})
"""


@pytest.mark.sm75
@pytest.mark.parametrize("number", each(*BY_DEFAULT))
def test_flash_attention_2_is_built_without_its_kernels(
    number: str, released: Released, patched: Callable[[list[Patch]], Path], tmp_path: Path
) -> None:
    fetched, project = tmp_path / "flash-attention", tmp_path / "project"
    for name, text in FLASH_ATTENTION.items():
        (fetched / name).parent.mkdir(parents=True, exist_ok=True)
        (fetched / name).write_text(text)
    project.mkdir()
    (project / "CMakeLists.txt").write_text(PROJECT)
    tree = patched(patches_for(number, "cuda", (7, 5)))

    assert compiled(project, released.tree / CMAKE, fetched) == {
        "flash_api.cpp",
        "flash_fwd_hdim64.cu",
    }
    assert compiled(project, tree / CMAKE, fetched) == {"flash_api.cpp"}


def compiled(project: Path, vllm_cmake: Path, fetched: Path) -> set[str]:
    """Return the names of the files that the build of FA2's extension compiles."""
    tools = interpreter().parent
    build = project / f"build-{vllm_cmake.parent.parent.parent.name}"
    configure = [
        *(str(tools / "cmake"), "-G", "Ninja", "-S", str(project), "-B", str(build)),
        *(f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}", f"-DVLLM_CMAKE={vllm_cmake}"),
        f"-DFETCHCONTENT_SOURCE_DIR_VLLM-FLASH-ATTN={fetched}",  # as a build is handed it
    ]
    subprocess.run(configure, check=True, capture_output=True)
    listing = subprocess.run(
        [tools / "ninja", "-C", build, "-t", "commands", "_vllm_fa2_C"],
        check=True,
        capture_output=True,
        text=True,
    )
    return {Path(name).name for name in re.findall(r"-c (\S+)", listing.stdout)}
