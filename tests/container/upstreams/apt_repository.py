"""Debian packages packed from folders, and a signed repository of them, with dpkg-deb and gpg.

It is a flat repository (`deb URL /`), as NVIDIA's are.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from tests.container.console import StepFailed

# Archives of equal content are equal byte for byte: their digests are pinned elsewhere.
EPOCH = "1767225600"


@dataclass(frozen=True)
class Package:
    """A binary package: its control fields, and what dpkg runs once it is unpacked."""

    name: str
    version: str
    architecture: str = "all"
    depends: str = ""
    postinst: str = ""

    @property
    def file_name(self) -> str:
        return f"{self.name}_{self.version}_{self.architecture}.deb"

    def control(self) -> str:
        fields = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": self.architecture,
            "Maintainer": "nobody <nobody@localhost>",
            "Depends": self.depends,
            "Description": f"stand-in for {self.name}",
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def pack(package: Package, tree: Path, folder: Path) -> Path:
    """Build the package from `tree`, its file system, into `folder`; /etc holds conffiles."""
    control = tree / "DEBIAN"
    control.mkdir(parents=True)
    (control / "control").write_text(package.control())
    if package.postinst:
        (control / "postinst").write_text(package.postinst)
        (control / "postinst").chmod(0o755)
    conffiles = sorted(path for path in (tree / "etc").rglob("*") if path.is_file())
    if conffiles:
        lines = [f"/{path.relative_to(tree)}\n" for path in conffiles]
        (control / "conffiles").write_text("".join(lines))
    target = folder / package.file_name
    # zstd at its lowest level: 400 MB in about a second, and dpkg has it since Debian 12.
    run("dpkg-deb", "-Zzstd", "-z1", "--root-owner-group", "--build", str(tree), str(target))
    return target


def run(*argv: str, **environment: str) -> str:
    """Run a program and return its output.

    Raises:
        StepFailed: it is not installed, or exited non-zero.
    """
    variables = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "LC_ALL": "C.UTF-8", **environment}
    try:
        done = subprocess.run(
            argv, env=variables, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        raise StepFailed(
            f"cannot run {argv[0]}: it is not installed. As root: apt-get install dpkg gnupg zstd"
        ) from error
    if done.returncode:
        raise StepFailed(f"`{' '.join(argv[:4])} ...` exited {done.returncode}: {done.stderr}")
    return done.stdout


class Signer:
    """A throw-away key; its private half goes when the `signer` block ends."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._gpg(
            "--passphrase", "", "--quick-generate-key", "stand-in", "rsa2048", "sign", "never"
        )
        listing = self._gpg("--with-colons", "--fingerprint")
        self.fingerprint = next(
            line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:")
        )

    def public_key(self, target: Path) -> None:
        """Write the key in the form that apt's Signed-By takes."""
        target.parent.mkdir(parents=True, exist_ok=True)
        self._gpg("--output", str(target), "--export")

    def clear_sign(self, source: Path, target: Path) -> None:
        self._gpg("--output", str(target), "--clear-sign", str(source))

    def _gpg(self, *arguments: str) -> str:
        return run("gpg", "--batch", "--no-tty", "--yes", *arguments, GNUPGHOME=self._home)


@contextmanager
def signer() -> Iterator[Signer]:
    """Make a key for as long as the block runs."""
    # In /tmp: the agent's socket must have a short path.
    with tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as home:
        try:
            yield Signer(home)
        finally:
            run("gpgconf", "--kill", "all", GNUPGHOME=home)


def index(folder: Path, packages: Iterable[Package], key: Signer, origin: str) -> None:
    """Write Packages, Packages.gz and InRelease for the packages, which lie in `folder`."""
    text = "\n".join(_stanza(package, folder) for package in packages).encode()
    (folder / "Packages").write_bytes(text)
    (folder / "Packages.gz").write_bytes(gzip.compress(text, mtime=0))
    lines = [f"Origin: {origin}", f"Label: {origin}", f"Date: {formatdate(usegmt=True)}", "SHA256:"]
    for name in ("Packages", "Packages.gz"):
        content = (folder / name).read_bytes()
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}")
    release = folder / "Release"
    release.write_text("\n".join(lines) + "\n")
    key.clear_sign(release, folder / "InRelease")


def _stanza(package: Package, folder: Path) -> str:
    path = folder / package.file_name
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    extra = f"Filename: ./{path.name}\nSize: {path.stat().st_size}\nSHA256: {digest}\n"
    return package.control() + extra


def architecture() -> str:
    """Return this machine's architecture as dpkg names it."""
    return run("dpkg", "--print-architecture").strip()


def fresh(folder: Path) -> Path:
    """Return `folder`, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
