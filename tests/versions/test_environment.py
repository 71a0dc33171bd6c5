"""The environment that proves is made once for what it is made from."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from upkeep.environment import EnvironmentFailed, inputs, interpreter, torch_requirement
from upkeep.locks import PROJECT


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """An environment as it is left when all went well."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / "made-from").write_text(inputs())
    return tmp_path


def test_what_is_current_is_not_made_again(made: Path) -> None:
    assert interpreter(made) == made / "bin" / "python"


DRIFT: dict[str, Callable[[Path], object]] = {
    "made from something else": lambda folder: (folder / "made-from").write_text("another lock"),
    "never finished": lambda folder: (folder / "made-from").unlink(),
    "its python is gone": lambda folder: (folder / "bin" / "python").unlink(),
}


@pytest.mark.parametrize("drift", DRIFT.values(), ids=DRIFT)
def test_what_drifted_is_made_again(
    drift: Callable[[Path], object], made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drift(made)
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with pytest.raises(EnvironmentFailed, match=r"/no/such/python -m venv"):
        interpreter(made)
    assert not made.exists(), "nothing is left of what was there before"


def test_torch_is_the_cpu_build_of_what_the_project_pins() -> None:
    pinned = tomllib.loads(PROJECT.read_text())["dependency-groups"]["prove"]
    assert torch_requirement().removesuffix("+cpu") in pinned
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+\+cpu", torch_requirement())
