"""Source trees to prove things on: a released version as it is, and with a host's patches."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from upkeep.sdists import fetch, unpack
from versions import Patch, Version, sdist_of

# The attention kernels, what they are made of, and the other files that patches change.
_PLACES = (
    "cmake/external_projects",
    "setup.py",
    "vllm/utils",
    "vllm/v1/attention",
    "vllm/v1/kv_cache_interface.py",
)
PATCH_FILES: Final = Path(__file__).resolve().parent.parent / "files" / "patches"


class PatchRefused(RuntimeError):
    """A patch does not apply to a tree."""


def stock(version: Version, into: Path) -> Path:
    """Unpack what the patches and proofs touch of a version's source; return its root."""
    return unpack(fetch(sdist_of(version)), into, _of_interest)


def patched(tree: Path, into: Path, patches: Iterable[Patch]) -> Path:
    """Copy a tree and apply the patches; PatchRefused names one that does not."""
    copy = shutil.copytree(tree, into / tree.name)
    for patch in patches:
        apply(copy, PATCH_FILES / patch.file)
    return copy


def apply(tree: Path, patch: Path) -> None:
    """Apply a patch as a host does: `git apply`, which takes no fuzz."""
    # Inside another repository git apply would silently skip what lies below the current folder.
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.resolve().parent)}
    command = ["git", "apply", str(patch)]
    answer = subprocess.run(
        command, cwd=tree, env=outside, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise PatchRefused(f"{patch.name} does not apply to {tree.name}: {answer.stderr.strip()}")


def _of_interest(path: PurePosixPath) -> bool:
    return any(path.is_relative_to(place) for place in _PLACES)
