"""The released vLLM sources: fetched by name from the Python package index, pinned by sha256."""

import hashlib
import os
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import requests

from upkeep.tools import UV
from versions import Sdist

CACHE = Path(__file__).resolve().parent.parent / ".cache"
CHUNK = 1 << 20  # bytes


class FetchFailed(RuntimeError):
    """The index has no such source, it could not be had, or it is not the pinned one."""


def fetch(sdist: Sdist, cache: Path = CACHE / "sdists", index: str | None = None) -> Path:
    """Return the archive in the cache, downloaded first where it is missing or damaged.

    `index` is the address of the package index, None for the one that uv is set up with.
    """
    archive = cache / f"vllm-{sdist.number}.tar.gz"
    if archive.exists() and digest(archive) == sdist.sha256:
        return archive
    cache.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(f".{os.getpid()}.partial")
    try:
        _download(locate(sdist, index), partial)
        found = digest(partial)
        if found != sdist.sha256:
            raise FetchFailed(
                f"{archive.name} from the index has sha256 {found}, wanted {sdist.sha256}: it is "
                "not the source that versions.py was written from"
            )
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)
    return archive


def locate(sdist: Sdist, index: str | None = None) -> str:
    """Return the URL at which the index has the source distribution."""
    requirement = f"vllm=={sdist.number}\n"
    arguments = "pip compile --quiet --no-deps --no-header --format pylock.toml --no-binary vllm -"
    answer = subprocess.run(
        [UV, *arguments.split()],
        input=requirement,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})},
    )
    if answer.returncode:
        raise FetchFailed(
            f"the index does not offer {requirement.strip()}: {answer.stderr.strip()}"
        )
    return str(tomllib.loads(answer.stdout)["packages"][0]["sdist"]["url"])


def digest(path: Path) -> str:
    """Return a file's sha256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def texts(archive: Path, paths: list[str]) -> dict[str, str]:
    """Return the content of some files of the tree, by their paths from its root."""
    root = archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as tar:
        return {path: _text(tar, f"{root}/{path}") for path in paths}


def unpack(archive: Path, into: Path, wanted: Callable[[PurePosixPath], bool]) -> Path:
    """Unpack the wanted files, told by their paths from the tree's root; return that root."""
    root = archive.name.removesuffix(".tar.gz")

    def keep(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
        path = PurePosixPath(member.name).relative_to(root)
        return tarfile.data_filter(member, target) if wanted(path) else None

    with tarfile.open(archive) as tar:
        tar.extractall(into, filter=keep)
    return into / root


def _text(tar: tarfile.TarFile, name: str) -> str:
    try:
        member = tar.extractfile(name)
    except KeyError:
        member = None
    if member is None:
        root, _, path = name.partition("/")
        raise FetchFailed(f"{root}.tar.gz has no file {path}")
    return member.read().decode()


def _download(url: str, target: Path) -> None:
    try:
        with requests.get(url, stream=True, timeout=60) as response, target.open("wb") as file:
            response.raise_for_status()
            for chunk in response.iter_content(CHUNK):
                file.write(chunk)
    except requests.RequestException as error:
        raise FetchFailed(f"could not download {target.name}: {error}") from error
