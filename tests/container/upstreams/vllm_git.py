"""vLLM's git repository, made from its released source archives, and a server for it.

The trees are the real ones; the history is two commits, and they are the same on every machine.
"""

import hashlib
import json
import os
import shutil
import socketserver
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import versions
from tests.container.console import StepFailed
from upkeep.sdists import FetchFailed, fetch

# Oldest first. The newer one is what the stand-in converges to.
NUMBERS = ("0.31.0", "0.32.0")
# What setuptools adds to an archive; the repository does not track it.
GENERATED = ("PKG-INFO", "setup.cfg", "vllm.egg-info", "vllm/_version.py")
NAME = "vllm.git"
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in {
        "NAME": "vLLM releases",
        "EMAIL": "releases@localhost",
        "DATE": "2026-01-01T00:00:00+00:00",
    }.items()
}


def ensure(cache: Path, pip: Mapping[str, str]) -> Path:
    """Return a folder with the bare repository NAME in it; make it where it is missing."""
    sdists = [versions.sdist_of(versions.SUPPORTED[number]) for number in NUMBERS]
    recipe = json.dumps([[sdist.sha256 for sdist in sdists], GENERATED, _IDENTITY])
    folder = cache / "upstreams" / f"vllm-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if folder.exists():
        return folder
    try:
        archives = {
            f"v{sdist.number}": fetch(sdist, cache / "sdists", pip.get("index-url"))
            for sdist in sdists
        }
    except FetchFailed as error:
        raise StepFailed(str(error)) from error
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        _make(made / NAME, archives, Path(scratch))
        made.rename(folder)  # at once: an interrupted run leaves nothing half made
    return folder


def _make(repository: Path, archives: Mapping[str, Path], scratch: Path) -> None:
    _git("init", "--quiet", "--bare", "--initial-branch=main", str(repository))
    for tag, archive in archives.items():
        tree = _unpack(archive, scratch / tag)
        inside = (f"--git-dir={repository}", f"--work-tree={tree}")
        _git(*inside, "add", "--all", "--force", ".")
        _git(*inside, "commit", "--quiet", f"--message=Release {tag}")
        _git(*inside, "tag", tag)
        shutil.rmtree(tree)
    # The public host allows these too; a shallow fetch of one commit needs the first.
    _git(f"--git-dir={repository}", "config", "uploadpack.allowReachableSHA1InWant", "true")
    _git(f"--git-dir={repository}", "config", "uploadpack.allowFilter", "true")
    _git(f"--git-dir={repository}", "repack", "-a", "-d", "--quiet", "--window=0")


def _unpack(archive: Path, target: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    (tree,) = target.iterdir()
    for name in GENERATED:
        path = tree / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return tree


def _git(*arguments: str) -> None:
    # The user's own settings (signing, hooks, line ends) would change the commits.
    neutral = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    environment = {**os.environ, **_IDENTITY, **neutral}
    try:
        done = subprocess.run(["git", *arguments], env=environment, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise StepFailed(
            "cannot make vLLM's repository: git is not installed. As root: apt-get install git"
        ) from error
    if done.returncode:
        raise StepFailed(f"git {arguments[-1]} failed: {done.stderr.strip()}")


class GitServer(socketserver.ThreadingTCPServer):
    """Serves the repositories of one folder on loopback, over git's own protocol."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        super().__init__(("127.0.0.1", port), _GitConnection)


class _GitConnection(socketserver.BaseRequestHandler):
    server: GitServer

    def handle(self) -> None:
        # One process a connection, on its socket: nothing outlives this server.
        subprocess.run(
            ["git", "daemon", "--inetd", "--export-all", f"--base-path={self.server.folder}"],
            stdin=self.request,
            stdout=self.request,
            stderr=subprocess.DEVNULL,
        )
