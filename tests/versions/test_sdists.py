"""Sources are fetched from the configured index, once, and only as pinned."""

import hashlib
import io
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.loopback import serving, url
from upkeep.sdists import FetchFailed, fetch, locate, texts, unpack
from versions import Sdist

FILES = {
    "PKG-INFO": "Metadata-Version: 2.2\nName: vllm\nVersion: 9.9.9\n",
    "pyproject.toml": "[build-system]\nrequires = []\n",
    "setup.py": "built = False\n",
    "vllm/envs.py": "fetched = True\n",
    "csrc/kernel.cu": "",
}


def archive() -> bytes:
    """Return a source distribution as small as one can be."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"vllm-9.9.9/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


ARCHIVE = archive()
PINNED = Sdist("9.9.9", hashlib.sha256(ARCHIVE).hexdigest())


class Index(BaseHTTPRequestHandler):
    """A package index with one source distribution."""

    def do_GET(self) -> None:
        pages = {
            "/simple/vllm/": b'<a href="/vllm-9.9.9.tar.gz">vllm-9.9.9.tar.gz</a>',
            "/vllm-9.9.9.tar.gz": ARCHIVE,
        }
        body = pages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: pytest's output is for failures."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of an index that uv is told to use, as it would be by its own configuration."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Index)) as server:
        address = url(server)
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{address}/simple")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(proxy, raising=False)
        yield address


def test_a_source_is_fetched_from_the_index_that_is_configured(index: str, tmp_path: Path) -> None:
    assert locate(PINNED) == f"{index}/vllm-9.9.9.tar.gz"
    assert fetch(PINNED, tmp_path / "cache").read_bytes() == ARCHIVE


def test_a_source_in_the_cache_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "vllm-9.9.9.tar.gz").write_bytes(ARCHIVE)
    assert fetch(PINNED, tmp_path) == tmp_path / "vllm-9.9.9.tar.gz"


def test_a_damaged_source_in_the_cache_is_replaced(index: str, tmp_path: Path) -> None:
    (tmp_path / "vllm-9.9.9.tar.gz").write_bytes(ARCHIVE[:-1])
    assert fetch(PINNED, tmp_path).read_bytes() == ARCHIVE


def test_a_source_that_is_not_the_pinned_one_is_refused_and_not_kept(
    index: str, tmp_path: Path
) -> None:
    with pytest.raises(FetchFailed, match=rf"sha256 {PINNED.sha256}, wanted 00"):
        fetch(Sdist("9.9.9", "0" * 64), tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_version_that_the_index_does_not_have_is_named(index: str, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match=r"the index does not offer vllm==9\.9\.8"):
        fetch(Sdist("9.9.8", "0" * 64), tmp_path / "cache")


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    path = tmp_path / "vllm-9.9.9.tar.gz"
    path.write_bytes(ARCHIVE)
    return path


def test_files_are_read_by_their_path_in_the_tree(cached: Path) -> None:
    assert texts(cached, ["vllm/envs.py"]) == {"vllm/envs.py": "fetched = True\n"}


def test_a_file_that_the_source_lacks_is_named(cached: Path) -> None:
    with pytest.raises(FetchFailed, match=r"vllm-9\.9\.9\.tar\.gz has no file vllm/none\.py"):
        texts(cached, ["vllm/none.py"])


def test_only_what_is_wanted_is_unpacked(cached: Path, tmp_path: Path) -> None:
    tree = unpack(cached, tmp_path / "into", lambda path: path.suffix == ".py")
    found = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    assert found == {"setup.py", "vllm/envs.py"}
