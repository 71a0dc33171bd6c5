"""Source trees to prove things on: a released version as it is, and with a host's patches."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from upkeep.sdists import fetch, unpack
from versions import Patch, Version, sdist_of

PATCH_FILES: Final = Path(__file__).resolve().parent.parent / "files" / "patches"


class PatchRefused(RuntimeError):
    """A patch does not apply to a tree."""


def stock(version: Version, into: Path) -> Path:
    """Unpack what the patches and proofs touch of a version's source; return its root."""
    return unpack(fetch(sdist_of(version)), into, _of_interest)


def patched(version: Version, into: Path, patches: Iterable[Patch]) -> Path:
    """Unpack a version's source and apply the patches; PatchRefused names one that does not."""
    tree = stock(version, into)
    for patch in patches:
        apply(tree, PATCH_FILES / patch.file)
    return tree


def apply(tree: Path, patch: Path) -> None:
    """Apply a patch as a host does: `git apply`, which takes no fuzz."""
    # Inside another repository git apply would silently skip what lies below the current folder.
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", str(patch)]
    answer = subprocess.run(
        command, cwd=tree, env=outside, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise PatchRefused(f"{patch.name} does not apply to {tree.name}: {answer.stderr.strip()}")


def _of_interest(path: PurePosixPath) -> bool:
    return path.parts[:1] in {("vllm",), ("cmake",)} or path.name == "setup.py"
