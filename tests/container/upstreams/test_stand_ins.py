"""The upstreams' stand-ins by themselves: index pages, downloads, git, and the ports they keep."""

import hashlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.container.console import StepFailed
from tests.container.upstreams import index_page
from tests.container.upstreams.served import serve
from tests.container.upstreams.static_http import StaticServer

CONTENT = b"a source archive" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "vllm-9.9.9.tar.gz"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The folder of an index with one project of one file, and the index's address."""
    project = tmp_path / "index" / "simple" / "vllm"
    project.mkdir(parents=True)
    (tmp_path / "index" / NAME).write_bytes(CONTENT)
    (project / "index.html").write_text(f'<a href="../../{NAME}#sha256={SHA256}">{NAME}</a>')
    with StaticServer(tmp_path / "index", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path / "index", f"http://127.0.0.1:{server.server_address[1]}/simple"
        server.shutdown()


def test_a_file_is_found_on_the_index_and_fetched(index: tuple[Path, str], tmp_path: Path) -> None:
    path = index_page.fetch("vllm", NAME, SHA256, tmp_path / "got", {"index-url": index[1]})
    assert path.read_bytes() == CONTENT


def test_a_file_that_is_there_intact_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(CONTENT)
    unreachable = {"index-url": "http://127.0.0.1:9/simple"}
    assert index_page.fetch("vllm", NAME, SHA256, tmp_path, unreachable) == tmp_path / NAME


def test_a_download_cut_short_is_refused_and_leaves_nothing(
    index: tuple[Path, str], tmp_path: Path
) -> None:
    (index[0] / NAME).write_bytes(CONTENT[:-1])
    with pytest.raises(StepFailed, match=rf"{len(CONTENT) - 1} bytes came.*wanted {SHA256}"):
        index_page.fetch("vllm", NAME, SHA256, tmp_path / "got", {"index-url": index[1]})
    assert list((tmp_path / "got").iterdir()) == []


def test_a_file_that_the_index_lacks_is_named(index: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"vllm-0\.0\.0\.tar\.gz: .* does not list it"):
        index_page.fetch("vllm", "vllm-0.0.0.tar.gz", SHA256, tmp_path, {"index-url": index[1]})


def test_addresses_on_a_page_are_made_absolute() -> None:
    page = '<a href="../../packages/a.tar.gz#sha256=00">a.tar.gz</a><a href="http://x/b">b</a>'
    assert index_page.links(page, "https://index.example/simple/a/") == {
        "a.tar.gz": "https://index.example/packages/a.tar.gz",
        "b": "http://x/b",
    }


@given(st.text())
def test_any_page_is_read_without_an_error(page: str) -> None:
    index_page.links(f"<a href=x>{page}</a>{page}", "https://index.example/")


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    """A folder with one bare repository that has the tag v1."""
    folder = tmp_path / "repositories"
    script = """
        git init --quiet --bare x.git
        tree=$(git -C x.git mktree </dev/null)
        commit=$(git -C x.git -c user.name=x -c user.email=x commit-tree -m one "$tree")
        git -C x.git tag v1 "$commit"
    """
    folder.mkdir()
    subprocess.run(["sh", "-ec", script], cwd=folder, check=True)
    return folder


def test_a_tag_can_be_fetched_and_one_that_is_not_there_cannot(
    repositories: Path, tmp_path: Path
) -> None:
    with serve(tmp_path, repositories, tmp_path / "ports.json") as ports:
        clone = ["git", "clone", "--depth=1", f"git://127.0.0.1:{ports.git}/x.git"]
        good = subprocess.run(
            [*clone, "--branch=v1", str(tmp_path / "good")], capture_output=True, text=True
        )
        bad = subprocess.run(
            [*clone, "--branch=v2", str(tmp_path / "bad")], capture_output=True, text=True
        )
    assert good.returncode == 0, good.stderr
    assert bad.returncode != 0
    assert "v2 not found" in bad.stderr


def test_the_ports_are_the_same_next_time(repositories: Path, tmp_path: Path) -> None:
    remembered = tmp_path / "ports.json"
    with serve(tmp_path, repositories, remembered) as first:
        pass
    with serve(tmp_path, repositories, remembered) as second:
        assert second == first


def test_a_port_taken_since_is_replaced(repositories: Path, tmp_path: Path) -> None:
    remembered = tmp_path / "ports.json"
    with serve(tmp_path, repositories, remembered) as first:
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first.git))
        taken.listen()
        with serve(tmp_path, repositories, remembered) as second:
            assert second.http == first.http
            assert second.git != first.git


@pytest.mark.parametrize("content", ["", "{", "[]", '{"http": 1, "ftp": 2}'])
def test_a_memory_cut_short_is_as_good_as_none(
    repositories: Path, tmp_path: Path, content: str
) -> None:
    remembered = tmp_path / "ports.json"
    remembered.write_text(content)
    with serve(tmp_path, repositories, remembered) as ports:
        assert ports.http
        assert ports.git
