"""The environment that proves: torch's CPU build, Triton, cmake. Made on demand in the cache."""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from upkeep.locks import PROJECT, PROVE_LOCK
from upkeep.sdists import CACHE

# Asked for torch's CPU build only where the configured index does not have it.
TORCH_INDEX_URL: Final = os.environ.get("TORCH_INDEX_URL", "https://download.pytorch.org/whl/cpu")


class EnvironmentFailed(RuntimeError):
    """The environment that proves could not be made."""


def interpreter(folder: Path = CACHE / "prove") -> Path:
    """Return the environment's python; make it first where it is missing or out of date."""
    python, stamp = folder / "bin" / "python", folder / "made-from"
    if python.exists() and stamp.exists() and stamp.read_text() == inputs():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
    _run([*pip, "--require-hashes", "--requirement", str(PROVE_LOCK)])
    torch = torch_requirement()
    index = [] if _offered(pip, torch) else ["--extra-index-url", TORCH_INDEX_URL]
    _run([*pip, *index, torch])
    stamp.write_text(inputs())
    return python


def inputs() -> str:
    """Return a digest of what the environment is made from."""
    text = f"{sys.version}\n{torch_requirement()}\n{PROVE_LOCK.read_text()}"
    return hashlib.sha256(text.encode()).hexdigest()


def torch_requirement() -> str:
    """Return the torch that the project's group `prove` pins, as its CPU build."""
    groups = tomllib.loads(PROJECT.read_text())["dependency-groups"]
    (pin,) = [entry for entry in groups["prove"] if entry.startswith("torch==")]
    return f"{pin}+cpu"


def _offered(pip: list[str], requirement: str) -> bool:
    answer = subprocess.run(
        [*pip, "--dry-run", requirement], capture_output=True, text=True, check=False
    )
    return answer.returncode == 0


def _run(command: list[str]) -> None:
    told = f"{' '.join(command)} failed"
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentFailed(f"{told}: {error}") from error
    if answer.returncode:
        raise EnvironmentFailed(f"{told}:\n{answer.stderr.strip()[-2000:]}")
