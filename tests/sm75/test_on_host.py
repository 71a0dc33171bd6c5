"""The check of a host, carried out by pyinfra on this machine with the environment that proves."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from operations import attention, filesystem
from operations.attention import Check
from tests.unit.converge import converge, plan_of
from upkeep.environment import interpreter
from upkeep.trees import patched, stock
from versions import SUPPORTED, patches_for

pytestmark = pytest.mark.sm75
NUMBER = "0.32.0"


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A released source, as it is and with the patches of a T4G."""
    folder = tmp_path_factory.mktemp("trees")
    released = stock(SUPPORTED[NUMBER], folder / "stock")
    patches = patches_for(NUMBER, "cuda", (7, 5))
    return {"stock": released, "patched": patched(released, folder / "patched", patches)}


def check_of(tree: Path) -> Check:
    # Without a GPU the kernels are compiled and not run.
    return Check(str(tree), source=tree.parent.name, python=str(interpreter()), run=False)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Where the probe lies and the record goes, with the probe brought there."""
    converge(filesystem.present, entries=attention.program_files(str(tmp_path)))
    return {"directory": str(tmp_path), "record": str(tmp_path / "attention.json")}


def test_a_tree_that_fits_is_checked_once(trees: dict[str, Path], places: dict[str, str]) -> None:
    check, record = check_of(trees["patched"]), Path(places["record"])
    wanted = {"check": check, **places}

    assert plan_of(attention.fits, **wanted)
    assert not record.exists()
    assert converge(attention.fits, **wanted)
    assert json.loads(record.read_text())["triton"] == "3.7.0"
    assert not converge(attention.fits, **wanted)

    assert plan_of(attention.fits, check=replace(check, source="another commit"), **places)
    record.write_text("{ torn")  # drift
    assert plan_of(attention.fits, **wanted)


def test_a_tree_that_does_not_fit_is_told_and_not_recorded(
    trees: dict[str, Path], places: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Exception, match="No hosts remaining"):
        converge(attention.fits, check=check_of(trees["stock"]), **places)
    told = capfd.readouterr()
    assert "head 512 prefill takes 98,304 bytes of 65,536 a block" in told.out + told.err
    assert "turing-tile-clamp.patch" in told.out + told.err
    assert not Path(places["record"]).exists()
