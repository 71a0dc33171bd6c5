"""Servers that are away, come back, lack a revision or are old, and what is left then."""

import http.server
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from files.build import fetched_sources
from files.build.fetched_sources import RETRY_AFTER, fetch, forget_others, git, place
from files.build.pinned_sources import Source
from tests.loopback import serving, url
from tests.unit.fetched_sources.conftest import (
    assert_complete,
    fetched,
    never,
    run,
    set_up,
)


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_unreachable_upstream_is_tried_a_few_times_and_then_named(
    pinned: Source,
    folder: Path,
    cut_off: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cut_off()
    waits: list[float] = []
    with pytest.raises(SystemExit) as refused:
        fetch([pinned], str(folder), waits.append)
    assert waits == list(RETRY_AFTER[:-1])
    fault = "fatal: '/no/such/0parent' does not appear to be a git repository"
    assert capsys.readouterr().out.splitlines() == [
        f"source 1 of 1, kernels {pinned.revision[:12]}, from {pinned.url}",
        f"that failed, trying again in 5 s (1 of 4 tries): {fault}",
        f"that failed, trying again in 20 s (2 of 4 tries): {fault}",
        f"that failed, trying again in 60 s (3 of 4 tries): {fault}",
    ]
    assert str(refused.value) == (
        f"cannot fetch kernels {pinned.revision} from {pinned.url} after 4 tries: {fault}. "
        "What is built was left as it is. Check the host's way out to that address, or point git "
        "to a mirror (git config --system url.<mirror>.insteadOf <upstream>); then run again."
    )


RETURNING = {"upstream": (), "a submodule": ("right",)}


@pytest.mark.parametrize("names", RETURNING.values(), ids=RETURNING)
def test_a_server_that_comes_back_is_waited_for(
    names: tuple[str, ...],
    pinned: Source,
    folder: Path,
    cut_off: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut_off(*names)
    kept: list[Path] = []

    def wait(seconds: float) -> None:
        kept.extend(folder.glob("*.new/.git/modules/third-party/left"))
        assert not Path(place(str(folder), pinned)).exists(), "half a source is not in its place"
        set_up(monkeypatch, {})

    places = fetch([pinned], str(folder), wait)
    assert_complete(Path(places[pinned]))
    assert len(kept) == len(names), "what came in the first try is kept"


MISSING = {"a commit": "0" * 40, "a tag": "v9.9.9"}


@pytest.mark.parametrize("revision", MISSING.values(), ids=MISSING)
def test_a_revision_that_is_not_there_is_not_tried_again(
    revision: str, pinned: Source, folder: Path
) -> None:
    with pytest.raises(SystemExit, match=rf"{revision} from .* after 1 try: .*not there any more"):
        fetched(replace(pinned, revision=revision), folder)


def test_what_cannot_be_had_leaves_what_is_there(pinned: Source, there: Path) -> None:
    newer = replace(pinned, revision="1" * 40)
    with pytest.raises(SystemExit):
        fetch([pinned, newer], str(there.parent), never)
    assert fetched_sources.is_whole(str(there), pinned)


def test_a_fetch_that_was_interrupted_begins_again(
    pinned: Source, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed_at_submodules(path: str, *arguments: str) -> Any:
        if arguments[0] == "submodule":
            (Path(path) / ".git" / "index.lock").touch()  # as a git that is killed leaves it
            raise Killed
        return git(path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fetched_sources, "git", killed_at_submodules)
        with pytest.raises(Killed):
            fetched(pinned, folder)
    assert [path.name for path in folder.iterdir()] == [f"kernels-{pinned.revision[:12]}.new"]
    path = fetched(pinned, folder)
    assert_complete(path)
    assert os.listdir(folder) == [path.name]


def test_a_server_that_gives_no_single_commits_is_asked_for_all(
    pinned: Source, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one that is no more than files behind a web server."""
    bare = tmp_path / "bare.git"
    run(tmp_path, "clone", "--quiet", "--bare", pinned.url, str(bare))
    run(bare, "update-server-info")
    handler = partial(Files, directory=str(tmp_path))
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        source = replace(pinned, url=f"{url(server)}/bare.git", submodules=())
        path = fetched(source, folder)
    assert (path / "code.cu").read_text() == "with third-party/right"
    assert "its server gives no single commits" in capsys.readouterr().out


def test_a_server_of_an_old_protocol_is_asked_for_all_that_leads_to_the_commit(
    pinned: Source,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up(monkeypatch, {"protocol.version": "0"})
    assert_complete(fetched(pinned, folder))
    assert "its server gives no single commits" in capsys.readouterr().out


def test_a_mirror_that_git_is_set_up_with_is_used(
    pinned: Source, folder: Path, servers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch, {f"url.file://{servers}/.insteadOf": "https://git.invalid/"})
    assert_complete(fetched(replace(pinned, url="https://git.invalid/parent"), folder))


def test_what_is_left_to_cmake_is_said_and_not_fetched(
    pinned: Source, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = replace(pinned, revision="main", obstacle="its revision 'main' is neither of both")
    assert fetch([left], str(folder), never) == {}
    told = "source 1 of 1, kernels main, is left to cmake: its revision 'main' is neither of both\n"
    assert capsys.readouterr().out == told
    assert os.listdir(folder) == []


def test_sources_of_an_earlier_build_are_removed(pinned: Source, there: Path) -> None:
    (there.parent / "kernels-0123456789ab").mkdir()
    (there.parent / "cutlass-v1.new").write_text("")
    forget_others({pinned: str(there)}, str(there.parent))
    assert os.listdir(there.parent) == [there.name]
