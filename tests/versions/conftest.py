import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.versions.released import Released, sources
from upkeep.trees import PATCH_FILES, apply
from versions import Patch


@pytest.fixture(scope="session")
def all_released() -> Iterator[dict[str, Released]]:
    with sources() as every:
        yield every


@pytest.fixture
def released(number: str, all_released: dict[str, Released]) -> Released:
    """The source of the version that the test is parametrized with."""
    return all_released[number]


@pytest.fixture
def patched(released: Released, tmp_path: Path) -> Callable[[list[Patch]], Path]:
    """Return what makes a tree of the files that patches touch, and applies them."""

    def make(patches: list[Patch]) -> Path:
        for patch in patches:
            for path in _touched(PATCH_FILES / patch.file):
                (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
                if not (tmp_path / path).exists():
                    shutil.copy(released.tree / path, tmp_path / path)
            apply(tmp_path, PATCH_FILES / patch.file)
        return tmp_path

    return make


def _touched(patch: Path) -> list[str]:
    """Return the paths that a patch changes."""
    return re.findall(r"^\+\+\+ b/(.+)$", patch.read_text(), re.M)
