"""Find and fetch a release file by name from the package index that pip is set up with.

`pip download` of a source archive runs the project's build to learn its metadata; for vLLM that
means installing torch first. The index page (PEP 503) has the address, and the digest is ours.
"""

import hashlib
import sys
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import requests

from tests.container.console import StepFailed

DEFAULT_INDEX = "https://pypi.org/simple"
TIMEOUT_SECONDS = 60
CHUNK_BYTES = 1 << 20


class _Links(HTMLParser):
    """Collects the address of each anchor under its text, which is a file's name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: dict[str, str] = {}
        self._href: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._href = dict(attrs).get("href")

    def handle_data(self, data: str) -> None:
        if self._href:
            self.links[data.strip()] = self._href


def links(page: str, base: str) -> dict[str, str]:
    """Return {file name: absolute address without fragment} of an index page at `base`."""
    parser = _Links()
    parser.feed(page)
    return {name: urldefrag(urljoin(base, href)).url for name, href in parser.links.items()}


def fetch(project: str, name: str, sha256: str, folder: Path, pip: Mapping[str, str]) -> Path:
    """Return the file `name` of `project` in `folder`, downloaded unless it is there intact.

    `pip` has pip's own settings: of these `index-url` is used.

    Raises:
        StepFailed: the index lacks the file, or what came has another digest.
    """
    path = folder / name
    if path.exists() and digest(path) == sha256:
        return path
    address = f"{pip.get('index-url', DEFAULT_INDEX).rstrip('/')}/{project}/"
    try:
        page = requests.get(address, timeout=TIMEOUT_SECONDS)
        page.raise_for_status()
        found = links(page.text, address).get(name)
        if not found:
            raise StepFailed(f"cannot fetch {name}: {address} does not list it")
        _download(found, path, sha256)
    except requests.RequestException as error:
        raise StepFailed(f"cannot fetch {name} by way of {address}: {error}") from error
    return path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(address: str, path: Path, sha256: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with requests.get(address, stream=True, timeout=TIMEOUT_SECONDS) as reply:
        reply.raise_for_status()
        with partial.open("wb") as file:
            for chunk in reply.iter_content(CHUNK_BYTES):
                file.write(chunk)
    got = digest(partial)
    if got != sha256:
        size = partial.stat().st_size
        partial.unlink()
        raise StepFailed(
            f"cannot use {path.name}: {size} bytes came, with SHA-256 {got}; wanted {sha256}. "
            "The download was cut short or the file was replaced; try again."
        )
    partial.rename(path)
    print(f"    fetched {path.name} ({path.stat().st_size >> 20} MiB)", file=sys.stderr)
