"""A source is checked out once, whole, at its revision, and again only where it is broken."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from files.build.pinned_sources import Source
from tests.unit.fetched_sources.conftest import (
    assert_complete,
    commit,
    fetched,
    run,
)


def test_the_pinned_commit_is_checked_out_with_all_submodules(pinned: Source, folder: Path) -> None:
    path = fetched(pinned, folder)
    assert path == folder / f"kernels-{pinned.revision[:12]}"
    assert_complete(path)
    assert run(path, "rev-list", "--count", "HEAD").strip() == "1", "no history is fetched"
    assert os.listdir(folder) == [path.name]


SUBMODULES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "one of them": (("third-party/right",), {"third-party/right/code.cu"}),
    "one with what it needs itself": (
        ("third-party/left",),
        {"third-party/left/code.cu", "third-party/left/deep/code.cu"},
    ),
    "none": ((), set()),
}


@pytest.mark.parametrize(("wanted", "files"), SUBMODULES.values(), ids=SUBMODULES)
def test_only_the_submodules_that_cmake_names_are_fetched(
    wanted: tuple[str, ...],
    files: set[str],
    pinned: Source,
    folder: Path,
    cut_off: Callable[..., None],
) -> None:
    source = replace(pinned, submodules=wanted)
    path = fetched(source, folder)
    found = {str(file.relative_to(path)) for file in (path / "third-party").rglob("code.cu")}
    assert found == files
    cut_off()
    assert fetched(source, folder) == path, "what is whole is not asked for again"


def test_what_is_whole_is_taken_as_it_is(
    pinned: Source,
    there: Path,
    cut_off: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cut_off()
    assert fetched(pinned, there.parent) == there
    told = f"source 1 of 1, kernels {pinned.revision[:12]}, is there\n"
    assert capsys.readouterr().out == told


def test_what_a_build_left_in_a_source_is_no_damage(
    pinned: Source, there: Path, cut_off: Callable[..., None]
) -> None:
    for name in ("generated.h", "third-party/left/generated.h", "third-party/left/deep/made.h"):
        (there / name).write_text("")
    cut_off()
    assert fetched(pinned, there.parent) == there


def put_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a file is gone": lambda path: (path / "code.cu").unlink(),
    "a file was edited": lambda path: (path / "code.cu").write_text("edited"),
    "a file of a submodule is gone": lambda path: (path / "third-party/right/code.cu").unlink(),
    "a file two levels down is gone": lambda path: (
        path / "third-party/left/deep/code.cu"
    ).unlink(),
    "a submodule is gone": lambda path: shutil.rmtree(path / "third-party/left"),
    "a submodule was never fetched": lambda path: run(
        path, "submodule", "--quiet", "deinit", "--force", "third-party/left"
    ),
    "a submodule is on another commit": lambda path: commit(path / "third-party/right", "other"),
    "it is on another commit": lambda path: commit(path, "another"),
    "its repository is gone": lambda path: shutil.rmtree(path / ".git"),
    "its index is gone": lambda path: (path / ".git" / "index").write_bytes(b"torn"),
    "its objects are gone": lambda path: shutil.rmtree(path / ".git" / "objects"),
    "a file stands in its place": put_a_file,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_broken_is_fetched_again(
    damage: Callable[[Path], object], pinned: Source, there: Path, tmp_path: Path
) -> None:
    run(tmp_path, "init", "--quiet")  # a repository around it, not to be taken for its own
    damage(there)
    assert fetched(pinned, there.parent) == there
    assert_complete(there)


@pytest.fixture
def tagged(pinned: Source, tmp_path: Path) -> Source:
    """The source at a tag, on a server of its own."""
    upstream = tmp_path / "cutlass"
    run(tmp_path, "clone", "--quiet", pinned.url, str(upstream))
    return Source("cutlass", f"file://{upstream}", "v4.7.1", (), None, "")


def test_a_tag_that_moves_upstream_does_not_move_what_is_there(
    tagged: Source, folder: Path, tmp_path: Path
) -> None:
    path = fetched(tagged, folder)
    assert path == folder / "cutlass-v4.7.1"
    run(tmp_path / "cutlass", "tag", "--force", "v4.7.1")
    assert (fetched(tagged, folder) / "code.cu").read_text() == "with third-party/right"
    shutil.rmtree(path)
    assert (fetched(tagged, folder) / "code.cu").read_text() == "moved on"


def test_a_tag_that_moved_under_a_checkout_is_checked_out_anew(
    tagged: Source, folder: Path, tmp_path: Path
) -> None:
    path = fetched(tagged, folder)
    run(tmp_path / "cutlass", "tag", "--force", "v4.7.1")
    run(path, "fetch", "--quiet", "--force", "origin", "refs/tags/v4.7.1:refs/tags/v4.7.1")
    assert (fetched(tagged, folder) / "code.cu").read_text() == "moved on"
