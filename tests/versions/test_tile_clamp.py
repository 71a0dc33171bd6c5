"""The function that turing-tile-clamp.patch adds picks the largest tile that fits."""

import ast
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from upkeep.trees import PATCH_FILES


class Platform:
    """What the clamp asks of vLLM's current_platform."""

    def __init__(self, *, cuda: bool, capability: tuple[int, int] | None) -> None:
        self.cuda = cuda
        self.capability = capability

    def is_cuda(self) -> bool:
        return self.cuda

    def get_device_capability(self) -> Any:
        if self.capability is None:
            return None
        return type("Capability", (), {"major": self.capability[0]})()


@pytest.fixture(scope="module")
def fit_tile_size(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    """The function that the patch adds, out of the lines that it adds."""
    text = (PATCH_FILES / "turing-tile-clamp.patch").read_text()
    added = "\n".join(re.findall(r"^\+(?!\+\+ )(.*)$", text, re.M))
    module = ast.parse(added[: added.index("    TILE_SIZE_PREFILL = ")])

    def call(tile: int, block_m: int, head: int, platform: Platform) -> int:
        names: dict[str, Any] = {"current_platform": platform}
        exec(compile(module, "turing-tile-clamp.patch", "exec"), names)
        fitted: int = names["_fit_tile_size"](tile, block_m, head)
        return fitted

    return call


powers = st.integers(4, 10).map(lambda exponent: 2**exponent)
TURING = Platform(cuda=True, capability=(7, 5))


@given(tile=powers, block_m=powers, head=powers)
def test_on_turing_the_tile_is_the_largest_that_fits(
    fit_tile_size: Callable[..., int], tile: int, block_m: int, head: int
) -> None:
    def needs(rows: int) -> int:
        return (block_m + rows) * head * 4

    fitted = fit_tile_size(tile, block_m, head, TURING)
    assume(needs(16) <= 65536)  # otherwise no tile fits
    assert needs(fitted) <= 65536
    assert fitted == tile or needs(fitted * 2) > 65536
    assert fitted in {tile >> halvings for halvings in range(7)}


@given(tile=powers, block_m=powers, head=powers)
def test_no_tile_goes_below_what_a_dot_product_takes(
    fit_tile_size: Callable[..., int], tile: int, block_m: int, head: int
) -> None:
    assert 16 <= fit_tile_size(tile, block_m, head, TURING) <= tile


ELSEWHERE = {
    "SM 8.0": Platform(cuda=True, capability=(8, 0)),
    "SM 12.0": Platform(cuda=True, capability=(12, 0)),
    "a GPU that cannot be asked": Platform(cuda=True, capability=None),
    "another vendor": Platform(cuda=False, capability=(7, 5)),
}


@pytest.mark.parametrize("platform", ELSEWHERE.values(), ids=ELSEWHERE)
@given(tile=powers, block_m=powers, head=powers)
def test_elsewhere_nothing_changes(
    fit_tile_size: Callable[..., int], platform: Platform, tile: int, block_m: int, head: int
) -> None:
    assert fit_tile_size(tile, block_m, head, platform) == tile
