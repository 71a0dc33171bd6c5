"""What a host has of the CUDA toolkit, and of NVIDIA's repository."""

import json
from collections.abc import Sequence
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.paths import FoundPath
from facts.script import answer, program


class Release(TypedDict):
    """Of /etc/os-release."""

    ID: str
    VERSION_ID: str


class FoundToolkit(TypedDict):
    """The toolkit as found at its own path, not behind the /usr/local/cuda link."""

    installed: str | None  # version of the package
    nvcc: str | None  # the release that nvcc itself reports; None: it does not run
    missing: list[str]  # of the files that make it whole
    owners: list[str]  # packages that should have brought what is missing or broken


class ToolkitState(TypedDict):
    """The toolkit, and what an installation would do."""

    toolkit: FoundToolkit
    touches: list[str] | None  # packages it would install or remove; None: nobody can tell yet
    free: int  # bytes below /usr/local


class RepositoryState(TypedDict):
    """The repository, and whether the toolkit is there without it."""

    toolkit: FoundToolkit
    architecture: str  # dpkg's: "arm64", "amd64"
    release: Release
    sources: dict[str, FoundPath]  # apt's source files that mention the repository
    keyring: str | None  # version of the cuda-keyring package
    keyring_is_older: bool
    fingerprints: list[str]  # of the keys in the keyring, 40 upper-case hex digits each


class CudaToolkit(FactBase[ToolkitState]):
    """The toolkit of a release below `home`; `files`, relative to it, make it whole.

    What an installation would do is asked of apt, which takes it a second, where it is not whole.
    """

    def command(self, package: str, release: str, home: str, files: Sequence[str]) -> StringCommand:
        asked = {"package": package, "release": release, "home": home, "files": list(files)}
        return program("cuda.py", json.dumps(asked))

    def process(self, output: list[str]) -> ToolkitState:
        state: ToolkitState = answer(output)
        return state


class CudaRepository(FactBase[RepositoryState]):
    """The apt sources that contain `mark`, and the keyring against a version of its package."""

    def command(
        self, mark: str, keyring_version: str, package: str, home: str, files: Sequence[str]
    ) -> StringCommand:
        asked = {"package": package, "home": home, "files": list(files)}
        asked |= {"mark": mark, "keyring_version": keyring_version}
        return program("cuda.py", json.dumps(asked))

    def process(self, output: list[str]) -> RepositoryState:
        state: RepositoryState = answer(output)
        return state
