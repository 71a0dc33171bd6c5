"""The unit that takes longest is compiled first, by the real cmake and ninja."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.versions.released import BY_DEFAULT, Released, each
from upkeep.environment import interpreter

HOOK = Path(__file__).resolve().parents[2] / "files" / "build" / "compile_order.cmake"
LONGEST = "scaled_mm_c2x.cu"
# The part of vLLM's CMakeLists.txt that lists the units of its core library, run for 7.5 with all
# that needs a compiler or the network left out.
LISTING = """
cmake_minimum_required(VERSION 3.26)
include({tree}/cmake/utils.cmake)
set(VLLM_GPU_LANG CUDA)
set(CMAKE_CUDA_COMPILER_VERSION 13.2)
set(CUDA_ARCHS 7.5)
foreach(left_out IN ITEMS set_gencode_flags_for_srcs set_source_files_properties set_property
                          FetchContent_Declare FetchContent_MakeAvailable)
  cmake_language(EVAL CODE "function(${{left_out}})\\nendfunction()")
endforeach()
function(execute_process)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "RESULT_VARIABLE" "")
  set(${{ARG_RESULT_VARIABLE}} 0 PARENT_SCOPE)
endfunction()
{listing}
foreach(unit IN LISTS VLLM_STABLE_EXT_SRC)
  message(NOTICE "unit ${{unit}}")
endforeach()
"""
# As vLLM's, with units that are no work: its first targets, the core library, and another.
PROJECT = """
cmake_minimum_required(VERSION 3.26)
project({name} LANGUAGES C)
set_source_files_properties({units} before.cu after.cu PROPERTIES LANGUAGE C)
set_source_files_properties({longest} PROPERTIES COMPILE_OPTIONS -DWITH_ITS_OWN_OPTIONS)
add_library(cumem_allocator MODULE before.cu)
add_library(_C_stable_libtorch MODULE {units})
add_library(_moe_C_stable_libtorch MODULE after.cu)
"""
EMPTY = "add_custom_target(flashkda)\n"  # as vLLM's for a GPU that a library is not for
INCLUDED = f"-DCMAKE_PROJECT_vllm_extensions_INCLUDE={HOOK}"
TARGETS = ("_moe_C_stable_libtorch", "_C_stable_libtorch", "cumem_allocator")


def run(*command: str | Path) -> str:
    tools = interpreter().parent
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def listed(released: Released, folder: Path) -> list[str]:
    """Return the units of vLLM's core library for 7.5, in upstream's order."""
    begin, end = r"^ *set\(VLLM_STABLE_EXT_SRC", r"^ *list\(REMOVE_DUPLICATES VLLM_STABLE_EXT_SRC"
    text = released.text("CMakeLists.txt")
    listing = re.search(rf"{begin}.*(?={end})", text, re.M | re.S)
    assert listing is not None
    for path in re.findall(r"\$\{CMAKE_CURRENT_SOURCE_DIR\}/(csrc/\S+\.py)", listing[0]):
        write(folder / path)  # whose digest is asked for
    script = folder / "listing.cmake"
    script.write_text(LISTING.format(tree=released.tree, listing=listing[0]))
    told = run("sh", "-c", 'cd "$1" && exec cmake -P listing.cmake', "sh", folder)
    return list(dict.fromkeys(re.findall(r"^unit (\S+)$", told, re.M)))


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def project(folder: Path, name: str, units: list[str]) -> list[str]:
    """Write a project of these units; return them with those around, in the order of its file."""
    every = ["before.cu", *units, "after.cu"]
    for unit in every:
        write(folder / unit)
    longest = next(unit for unit in units if unit.endswith(LONGEST))
    text = PROJECT.format(name=name, units="\n".join(units), longest=longest)
    write(folder / "CMakeLists.txt", text)
    return every


def started(folder: Path, *options: str, really: bool = True) -> list[str]:
    """Build with one job, by the options that vLLM's setup.py gives; return units as started."""
    build = folder / "build"
    pool = ("-DCMAKE_JOB_POOL_COMPILE:STRING=compile", "-DCMAKE_JOB_POOLS:STRING=compile=1")
    run("cmake", "-S", folder, "-B", build, "-G", "Ninja", *pool, *options)
    targets = [f"--target={name}" for name in TARGETS]
    command = ["cmake", "--build", str(build), "--verbose", "-j=1", *targets]
    told = run(*command, *([] if really else ["--", "-n"]))
    commands = [line for line in told.splitlines() if " -c " in line]
    with_options = [line for line in commands if "-DWITH_ITS_OWN_OPTIONS" in line]
    assert len(with_options) == 1, "options of a unit stay its own, wherever it stands"
    assert LONGEST in with_options[0]
    return [line.rsplit(f"{folder}/", 1)[1] for line in commands]


@pytest.mark.sm75
@pytest.mark.parametrize("number", each(*BY_DEFAULT))
def test_the_longest_unit_is_started_first_and_the_others_as_before(
    number: str, released: Released, tmp_path: Path
) -> None:
    units = listed(released, tmp_path)
    assert len(units) > 40
    (name,) = re.findall(r"^project\((\w+)", released.text("CMakeLists.txt"), re.M)
    every = project(tmp_path, name, units)
    assert started(tmp_path, really=False) == every
    (longest,) = [unit for unit in units if unit.endswith(f"/{LONGEST}")]
    others = [unit for unit in units if unit != longest]
    assert started(tmp_path, INCLUDED, really=False) == ["before.cu", longest, *others, "after.cu"]


UNITS = ["a.cu", "b/b.cu", "c.cu", "d.cu", f"e/{LONGEST}", "f.cu", "g.cu"]


@pytest.mark.sm75
def test_it_is_so_when_all_is_really_compiled(tmp_path: Path) -> None:
    project(tmp_path, "vllm_extensions", UNITS)
    others = [unit for unit in UNITS if LONGEST not in unit]
    assert started(tmp_path, INCLUDED) == ["before.cu", f"e/{LONGEST}", *others, "after.cu"]


@pytest.mark.sm75
def test_a_duration_in_the_log_of_ninja_changes_nothing(tmp_path: Path) -> None:
    """What the longest unit would need no line of cmake for, if ninja looked at it."""
    every = project(tmp_path, "vllm_extensions", UNITS)
    unit = f"CMakeFiles/_C_stable_libtorch.dir/e/{LONGEST}.o"
    log = tmp_path / "build" / ".ninja_log"
    write(log, f"# ninja log v7\n0\t382000\t1\t{unit}\t1234567890abcdef\n")
    assert started(tmp_path, really=False) == every
    assert unit in log.read_text()


@pytest.mark.sm75
def test_a_project_without_that_unit_is_built_as_it_is(tmp_path: Path) -> None:
    every = project(tmp_path, "vllm_extensions", ["one.cu", f"un{LONGEST}"])
    write(tmp_path / "CMakeLists.txt", (tmp_path / "CMakeLists.txt").read_text() + EMPTY)
    assert started(tmp_path, INCLUDED) == every
