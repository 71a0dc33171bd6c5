"""versions.py says what the released sources say."""

import ast
import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.versions.released import BY_DEFAULT, Released, each
from upkeep.locks import declared
from versions import BUILD_TOOLS, EXTENSIONS, SUPPORTED, sdist_of

pytestmark = pytest.mark.parametrize("number", each(*BY_DEFAULT))


def test_torch_is_what_the_source_requires(number: str, released: Released) -> None:
    assert (
        f"torch=={SUPPORTED[number].torch}" in released.text("requirements/cuda.txt").splitlines()
    )


def test_transformers_is_what_the_source_requires(number: str, released: Released) -> None:
    (line,) = re.findall(r"^transformers([^#\n]*)", released.text("requirements/common.txt"), re.M)
    assert re.sub(r"\s", "", line) == SUPPORTED[number].transformers


def test_transformers_are_capped_exactly_where_the_source_does_not(number: str) -> None:
    version = SUPPORTED[number]
    assert ("<" in version.transformers) != ("<" in version.transformers_cap)


def test_the_script_that_keeps_the_hosts_torch_is_where_it_says(
    number: str, released: Released
) -> None:
    assert "torch" in released.text(SUPPORTED[number].use_existing_torch)


def test_the_rust_toolchain_is_the_sources(number: str, released: Released) -> None:
    toolchain = tomllib.loads(released.text("rust-toolchain.toml"))["toolchain"]
    assert toolchain["channel"] == SUPPORTED[number].rust_toolchain


def test_the_rust_artifacts_are_those_that_the_source_builds(
    number: str, released: Released
) -> None:
    tree = ast.parse(released.text("tools/build_rust.py"))
    targets = {
        str(keyword.value.value).removeprefix("vllm.")
        for call in _calls(tree, "RustExtension")
        for keyword in call.keywords
        if keyword.arg == "target" and isinstance(keyword.value, ast.Constant)
    }
    assert {name.removesuffix("*.so") for name in SUPPORTED[number].rust_artifacts} == targets


def test_the_compiler_floor_is_the_sources(number: str, released: Released) -> None:
    asked = "GCC >= 13 is required to build vLLM with CUDA" in released.text("CMakeLists.txt")
    assert SUPPORTED[number].min_gcc == (13 if asked else 0)


def test_the_python_floor_is_the_sources(number: str, released: Released) -> None:
    project = tomllib.loads(released.text("pyproject.toml"))["project"]
    major, minor = SUPPORTED[number].min_python
    assert project["requires-python"].startswith(f">={major}.{minor},")


def test_the_flash_attention_commit_is_the_one_that_cmake_fetches(
    number: str, released: Released
) -> None:
    commit = SUPPORTED[number].flash_attention
    if SUPPORTED[number].sdist_sha256 is None:
        assert commit is None  # the stand-in's commit is not the tag's
    else:
        cmake = released.text("cmake/external_projects/vllm_flash_attn.cmake")
        assert f"GIT_TAG {commit}\n" in cmake


def test_the_extensions_that_must_load_are_built_and_not_optional(released: Released) -> None:
    required = {
        str(keyword.value.value)
        for call in _calls(ast.parse(released.text("setup.py")), "CMakeExtension")
        if not any(keyword.arg == "optional" for keyword in call.keywords)
        for keyword in call.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    }
    for extensions in EXTENSIONS.values():
        assert set(extensions) <= required


def test_the_build_tools_are_what_the_source_builds_with(released: Released) -> None:
    texts = [released.text(f"requirements/build/{name}.txt") for name in ("cpu", "cuda", "rust")]
    named = {Requirement(line).name for text in texts for line in declared(text.splitlines())}
    assert named == BUILD_TOOLS


def test_the_stand_in_is_a_release_of_the_same_series(number: str) -> None:
    assert sdist_of(SUPPORTED[number]).number.split(".")[:2] == number.split(".")[:2]


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]
