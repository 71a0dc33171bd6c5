"""The released sources that tests look into: three by default, all with the marker `versions`."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest

from upkeep.sdists import fetch, unpack
from versions import SUPPORTED, sdist_of

BY_DEFAULT = ("0.28.0", "0.32.0", "0.33.0")
FOLDERS = {"vllm", "cmake", "requirements", "tools"}


def each(*by_default: str) -> list[object]:
    """Return every listed version as a test parameter; those not named here are marked."""
    return [
        number if number in by_default else pytest.param(number, marks=pytest.mark.versions)
        for number in SUPPORTED
    ]


class Released:
    """The source of one version, unpacked once."""

    def __init__(self, number: str, folder: Path) -> None:
        self.number = number
        self._folder = folder

    @cached_property
    def tree(self) -> Path:
        """The root of the tree, less what no test looks at."""
        return unpack(fetch(sdist_of(SUPPORTED[self.number])), self._folder, _looked_at)

    def text(self, path: str) -> str:
        """Return a file of the tree."""
        return (self.tree / path).read_text()


@contextmanager
def sources() -> Iterator[dict[str, Released]]:
    """Give every listed version's source; nothing is fetched or unpacked before it is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        yield {number: Released(number, Path(folder, number)) for number in SUPPORTED}


def _looked_at(path: PurePosixPath) -> bool:
    return len(path.parts) <= 1 or path.parts[0] in FOLDERS
