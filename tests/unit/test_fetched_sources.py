"""Sources are fetched once, whole, and in the middle of nothing; all on real repositories."""

import http.server
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from files.build import fetched_sources
from files.build.fetched_sources import RETRY_AFTER, fetch, forget_others, git, place
from files.build.pinned_sources import Source
from tests.loopback import serving, url


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def run(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=u", "-c", "user.email=u@localhost", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, text: str) -> str:
    """Commit a file with this text; return the commit."""
    (folder / "code.cu").write_text(text)
    run(folder, "add", "code.cu")
    run(folder, "commit", "--quiet", "--message", text)
    return run(folder, "rev-parse", "HEAD").strip()


def repository(folder: Path) -> Path:
    folder.mkdir()
    run(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, "first")
    return folder


def add_submodule(parent: Path, child: Path, path: str) -> str:
    run(parent, "submodule", "--quiet", "add", f"file://{child}", path)
    return commit(parent, f"with {path}")


GIT = {"protocol.file.allow": "always"}  # submodules of local repositories


def configured(settings: dict[str, str]) -> dict[str, str]:
    """Return the variables of the environment that set git up so."""
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def set_up(patch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    for name, value in configured({**GIT, **settings}).items():
        patch.setenv(name, value)


@pytest.fixture(scope="module", autouse=True)
def local_files_allowed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_up(patch, {})
        yield


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two submodules, one of which has one itself; all moved on since."""
    folder = tmp_path_factory.mktemp("servers")
    inner, left, right = (repository(folder / name) for name in ("inner", "left", "right"))
    add_submodule(left, inner, "deep")
    parent = repository(folder / "parent")
    add_submodule(parent, left, "third-party/left")
    add_submodule(parent, right, "third-party/right")
    run(parent, "tag", "--annotate", "--message", "release", "v4.7.1")
    for moved in (inner, left, right, parent):
        commit(moved, "moved on")
    return folder


@pytest.fixture(scope="module")
def pinned(servers: Path) -> Source:
    """The source at a commit that no branch ends at any more."""
    parent = servers / "parent"
    revision = run(parent, "rev-parse", "v4.7.1^{commit}").strip()
    return Source("kernels", f"file://{parent}", revision, None, None, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sources"


@pytest.fixture(scope="module")
def complete(pinned: Source, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the source; not to be written to."""
    folder = tmp_path_factory.mktemp("complete")
    fetched(pinned, folder)
    return folder


@pytest.fixture
def there(complete: Path, folder: Path, pinned: Source) -> Path:
    """The source, in the folder already."""
    shutil.copytree(complete, folder, symlinks=True)
    return Path(place(str(folder), pinned))


@pytest.fixture
def cut_off(servers: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what makes these servers unreachable, all of them if none is named."""

    def cut(*names: str) -> None:
        urls = [f"file://{servers}/{name}" for name in names or [""]]
        set_up(monkeypatch, {f"url.file:///no/such/{n}.insteadOf": u for n, u in enumerate(urls)})

    return cut


def never(seconds: float) -> None:
    raise AssertionError(f"waited {seconds} s for a try that should have been the only one")


def fetched(source: Source, folder: Path) -> Path:
    return Path(fetch([source], str(folder), never)[source])


def assert_complete(path: Path) -> None:
    assert (path / "code.cu").read_text() == "with third-party/right"
    assert (path / "third-party/left/deep/code.cu").read_text() == "first"
    assert (path / "third-party/right/code.cu").read_text() == "first"


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
