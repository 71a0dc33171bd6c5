"""Real repositories that stand in for upstreams, and sources that are pinned there."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from files.build.fetched_sources import fetch, place
from files.build.pinned_sources import Source


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
