"""The upstreams' stand-ins by themselves: git, and the ports they keep."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.container.upstreams.served import serve


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
