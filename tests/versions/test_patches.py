"""Each patch applies to every version that gets it."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.versions.released import BY_DEFAULT, Released, each
from upkeep.trees import PATCH_FILES, PatchRefused, apply
from versions import PATCHES, SUPPORTED, Patch, patches_for


def test_every_file_is_in_the_table_and_the_other_way_round() -> None:
    assert {path.name for path in PATCH_FILES.iterdir()} == {patch.file for patch in PATCHES}


@pytest.mark.parametrize("number", each(*BY_DEFAULT))
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_patches_of_a_host_apply_in_their_order(
    number: str, device: Any, patched: Callable[[list[Patch]], Path]
) -> None:
    patches = patches_for(number, device, (7, 5) if device == "cuda" else None)
    tree = patched(patches)
    for path in tree.rglob("*.py"):
        ast.parse(path.read_text())


@pytest.mark.parametrize("number", each(*BY_DEFAULT))
def test_a_patch_that_is_already_in_is_refused(
    number: str, patched: Callable[[list[Patch]], Path]
) -> None:
    patches = patches_for(number, "cuda", (7, 5))
    tree = patched(patches)
    with pytest.raises(PatchRefused, match=r"turing-tile-clamp\.patch does not apply"):
        apply(tree, PATCH_FILES / patches[0].file)


def _parameters(source: str, function: str) -> list[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return [
                argument.arg.removesuffix("_ptr")
                for argument in (*node.args.posonlyargs, *node.args.args)
            ]
    raise LookupError(function)


def _slot_mapping_agrees(released: Released, tree: Path) -> bool:
    """Tell whether the CPU's stand-in takes what the kernel's callers pass, by position."""
    kernel = released.text("vllm/v1/worker/block_table.py")
    name = "kernel" if "def kernel(" in kernel else "_compute_slot_mapping_kernel"
    impl = (tree / "vllm/utils/cpu_triton_utils.py").read_text()
    return _parameters(impl, "_compute_slot_mapping_kernel_impl") == _parameters(kernel, name)


@pytest.mark.parametrize("number", each(*BY_DEFAULT))
def test_the_cpu_stand_in_disagrees_with_its_kernel_only_where_it_is_patched(
    number: str, released: Released, patched: Callable[[list[Patch]], Path]
) -> None:
    patches = [patch for patch in patches_for(number, "cpu", None) if patch.device == "cpu"]
    assert _slot_mapping_agrees(released, released.tree) == (not patches)
    if patches:
        assert _slot_mapping_agrees(released, patched(patches))


def test_every_listed_version_has_patches_on_turing() -> None:
    assert all(patches_for(number, "cuda", (7, 5)) for number in SUPPORTED)
