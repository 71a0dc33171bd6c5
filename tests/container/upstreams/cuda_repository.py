"""A stand-in for NVIDIA's apt repository, with the real nvcc in it.

NVIDIA publishes the toolkit's parts as wheels on PyPI too: the compiler that this repository
installs is NVIDIA's own and compiles for sm_75 on a machine without a GPU.
"""

import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.container.upstreams.apt_repository import (
    Package,
    architecture,
    fresh,
    index,
    pack,
    run,
    signer,
)

REQUIREMENTS = Path(__file__).with_name("cuda-toolkit.txt")
# Below the server's root, as on NVIDIA's. The container is a Debian 12.
PATH = "compute/cuda/repos"
DISTRIBUTION = "debian12"
RELEASE = "13.2"
HOME = f"usr/local/cuda-{RELEASE}"
KEYRING = "usr/share/keyrings/cuda-archive-keyring.gpg"
KEYRING_VERSION = "1.1-1"
OLD_KEYRING_VERSION = "1.0-1"  # with another key, as before NVIDIA's rotation of 2022
ARCHITECTURES = {"amd64": "x86_64", "arm64": "sbsa"}
# Package -> wheel's project. The names are those of NVIDIA's repository.
PARTS = {
    "cuda-nvcc-13-2": "nvidia_cuda_nvcc",
    "cuda-crt-13-2": "nvidia_cuda_crt",
    "libnvvm-13-2": "nvidia_nvvm",
    "cuda-cudart-dev-13-2": "nvidia_cuda_runtime",
    "cuda-cccl-13-2": "nvidia_cuda_cccl",
}
# Headers of libraries that are 2 GB in all: here they are there by name only.
LIBRARIES = "cuda-libraries-dev-13-2"
LIBRARY_HEADERS = ("cublas_v2.h", "cusparse.h", "cusolverDn.h")
TOOLKIT = "cuda-toolkit-13-2"
# A toolkit that brings a driver along: none of NVIDIA's does so today, and the deploy must refuse.
TOOLKIT_WITH_DRIVER = "cuda-toolkit-13-9"
# NVIDIA's toolkit moves this link by update-alternatives, and so may any other.
LINK = f"update-alternatives --install /usr/local/cuda cuda /{HOME} 132"


@dataclass(frozen=True)
class Published:
    """A repository laid out for one address: the folder to serve, and what a deploy must know."""

    folder: Path
    base_url: str
    keyring_sha256: dict[str, str]
    fingerprint: str

    @property
    def knobs(self) -> dict[str, object]:
        """The deploy's settings under which this stands in for NVIDIA's repository."""
        return {
            "cuda_repository": self.base_url,
            "cuda_keyring_version": KEYRING_VERSION,
            "cuda_keyring_sha256": self.keyring_sha256,
            "cuda_key_fingerprint": self.fingerprint,
        }


def ensure(cache: Path) -> Path:
    """Return a folder with the signed packages and the public keys; make it where it is missing.

    Takes about 15 s and, the first time, a download of 110 MB.
    """
    recipe = REQUIREMENTS.read_text() + Path(__file__).read_text() + architecture()
    folder = cache / "upstreams" / f"cuda-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if folder.exists():
        return folder
    wheels = _wheels(cache / "cuda-wheels")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = fresh(Path(scratch) / "made")
        trees = _trees(wheels, Path(scratch))
        for package, tree in trees.items():
            pack(package, tree, made)
        with signer() as key, signer() as retired:
            index(made, trees, key, "NVIDIA")
            key.public_key(made / "key.gpg")
            retired.public_key(made / "retired.gpg")
            (made / "key.json").write_text(json.dumps(key.fingerprint))
        made.rename(folder)  # at once: an interrupted run leaves nothing half made
    return folder


def publish(made: Path, folder: Path, port: int) -> Published:
    """Lay the repository out below `folder`, to be served at `port` of loopback.

    The keyring packages are made here, for they name the address.
    """
    path = f"{DISTRIBUTION}/{ARCHITECTURES[architecture()]}"
    base_url = f"http://127.0.0.1:{port}/{PATH}"
    target = fresh(folder / PATH / path)
    for file in made.iterdir():
        (target / file.name).symlink_to(file.resolve())
    archive = _keyring(made / "key.gpg", KEYRING_VERSION, f"{base_url}/{path}/", target)
    _keyring(made / "retired.gpg", OLD_KEYRING_VERSION, f"{base_url}/{path}/", target)
    return Published(
        folder=folder,
        base_url=base_url,
        keyring_sha256={path: hashlib.sha256(archive.read_bytes()).hexdigest()},
        fingerprint=json.loads((made / "key.json").read_text()),
    )


def _wheels(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    run(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"),
        *("--only-binary=:all:", "--dest", str(folder), "--requirement", str(REQUIREMENTS)),
    )
    return sorted(folder.glob("*.whl"))


def _trees(wheels: Sequence[Path], scratch: Path) -> dict[Package, Path]:
    """Return each package with its file system, unpacked below `scratch`."""
    native = architecture()
    trees = {
        Package(name, "13.2.78-1", native): _unpacked(wheels, project, scratch / name)
        for name, project in PARTS.items()
    }
    postinst = f"#!/bin/sh\nset -e\n{LINK}\n"
    trees[Package(LIBRARIES, "13.2.1-1", native)] = _headers(scratch / LIBRARIES)
    parts = ", ".join(package.name for package in trees)
    lists = [
        Package(TOOLKIT, "13.2.1-1", native, depends=parts, postinst=postinst),
        Package(TOOLKIT_WITH_DRIVER, "13.9.0-1", native, depends="cuda-drivers"),
        Package("cuda-drivers", "595.10-1", depends="nvidia-driver-595"),
        Package("nvidia-driver-595", "595.10-1"),
    ]
    return trees | {package: fresh(scratch / package.name) for package in lists}


def _headers(tree: Path) -> Path:
    """Lay out the libraries' headers, empty."""
    folder = fresh(tree) / HOME / "include"
    folder.mkdir(parents=True)
    for name in LIBRARY_HEADERS:
        (folder / name).touch()
    return tree


def _unpacked(wheels: Sequence[Path], project: str, tree: Path) -> Path:
    """Lay a wheel's nvidia/cu13/ out at the toolkit's home."""
    (wheel,) = (path for path in wheels if path.name.startswith(f"{project}-"))
    home = fresh(tree) / HOME
    prefix = "nvidia/cu13/"
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.startswith(prefix) and not member.is_dir():
                target = home / member.filename.removeprefix(prefix)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(member))
                executable = "bin" in target.parts[-3:] or ".so" in target.name
                target.chmod(0o755 if executable else 0o644)
    return tree


def _keyring(key: Path, version: str, url: str, folder: Path) -> Path:
    """Pack a cuda-keyring with what NVIDIA's has: the key, the list and the pin."""
    distribution, name = url.rstrip("/").split("/")[-2:]
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        files = {
            KEYRING: key.read_bytes(),
            f"etc/apt/sources.list.d/cuda-{distribution}-{name}.list": (
                f"deb [signed-by=/{KEYRING}] {url} /\n".encode()
            ),
            "etc/apt/preferences.d/cuda-repository-pin-600": (
                b"Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n"
            ),
        }
        for path, content in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(content)
            (tree / path).chmod(0o644)
        tree.chmod(0o755)
        return pack(Package("cuda-keyring", version), tree, folder)
