"""What is known of each vLLM version that a host can be given, as data.

Facts read in the released sources are marked source, those where a program was run measured, those
of the one report from a real g5g host field. `upkeep/` regenerates the locks and proves the patches
against every source listed here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from packaging.version import InvalidVersion
from packaging.version import Version as Number

Device = Literal["cuda", "cpu"]
Evidence = Literal["field", "measured", "source"]

# The one measured on hardware [field]. It has a git tag only, no sdist.
DEFAULT: Final = "0.27.2rc0"


class UnknownVersion(ValueError):
    """A version that the table does not list, and nobody allowed it by name."""


@dataclass(frozen=True)
class Version:
    """One vLLM version. `tag` names its source in git, `sdist_sha256` its source distribution.

    + torch, transformers: what upstream requires. The image's torch stays whatever `torch` says;
      the lock caps transformers further where upstream does not (`transformers_cap`)
    + use_existing_torch: path of the script that makes the tree accept the installed torch
    + rust_artifacts: files that a complete build leaves in the package, as globs
    + min_gcc: the build refuses an older compiler; 0 where it does not ask
    + flash_attention: commit that its cmake fetches; None where it is not known
    + evidence: the best there is for this version on compute capability 7.5: field = served on a
      T4G, measured = its attention kernels were compiled for sm_75, source = only read
    """

    number: str
    sdist_sha256: str | None
    torch: str
    transformers: str
    transformers_cap: str
    use_existing_torch: str
    rust_toolchain: str
    rust_artifacts: tuple[str, ...]
    needs_protoc: bool
    min_gcc: int
    min_python: tuple[int, int]
    flash_attention: str | None
    evidence: Evidence

    @property
    def tag(self) -> str:
        """The git tag."""
        return f"v{self.number}"


# 0.28.0 and older still build the Python binding of the tool parser beside the server. [source]
_SERVER = "vllm-rs"
_TOOL_PARSER = "_rust_tool_parser*.so"

_TABLE = (
    Version(
        number="0.27.2rc0",
        sdist_sha256=None,
        # As 0.27.1, the nearest release whose source can be had by name; untested for the tag.
        torch="2.13.0",
        transformers=">=5.5.3",
        # transformers 5.15 breaks Gemma 4 before vLLM 0.28.0 (vllm-project/vllm#51744). [issue]
        transformers_cap="<5.15",
        use_existing_torch="use_existing_torch.py",
        rust_toolchain="1.95",
        rust_artifacts=(_SERVER, _TOOL_PARSER),
        needs_protoc=True,
        min_gcc=0,
        min_python=(3, 10),
        flash_attention=None,
        evidence="field",
    ),
    Version(
        number="0.28.0",
        sdist_sha256="ac96dd0ec5be9c13f2aa4bfb50498c4727110406f6e4980b58a4097e4d18634a",
        torch="2.13.0",
        transformers=">=5.5.3",
        # Uncapped it resolves 5.24, above what even 0.33.0 allows. [measured] 0.31.0 is the first
        # release that states a ceiling; it is borrowed here and untested with this version.
        transformers_cap="<5.18",
        use_existing_torch="use_existing_torch.py",
        rust_toolchain="1.95",
        rust_artifacts=(_SERVER, _TOOL_PARSER),
        needs_protoc=True,
        min_gcc=0,
        min_python=(3, 10),
        flash_attention="f3e1a4f74c99145c0717709860bf765de1703779",
        evidence="measured",
    ),
    Version(
        number="0.29.0",
        sdist_sha256="c03feb07943ecae9e69e7dc424d7c5569ecf8d1292513aef2a4de67af381cd97",
        torch="2.13.0",
        transformers=">=5.10.4",
        transformers_cap="<5.18",  # as for 0.28.0
        use_existing_torch="use_existing_torch.py",
        rust_toolchain="1.95",
        rust_artifacts=(_SERVER, _TOOL_PARSER),
        needs_protoc=False,
        min_gcc=0,
        min_python=(3, 10),
        flash_attention="06bdd47c0d0383daf6a2ff0c418faff9c6da16e5",
        evidence="measured",
    ),
    Version(
        number="0.30.0",
        sdist_sha256="5f8f4e890c042ffa1c3e103f81c35e2d96f60a0a175ac43a4adbae7006bef62b",
        torch="2.13.0",
        transformers=">=5.10.4",
        transformers_cap="<5.18",  # as for 0.28.0
        use_existing_torch="use_existing_torch.py",
        rust_toolchain="1.95",
        rust_artifacts=(_SERVER, _TOOL_PARSER),
        needs_protoc=False,
        min_gcc=0,
        min_python=(3, 10),
        flash_attention="506341a143fcabd4bb79052a7605ada727d6b3f5",
        evidence="measured",
    ),
    Version(
        number="0.31.0",
        sdist_sha256="dde46f1efbe846e5bd0c5c4ec6ec71842c42254c7ff3d9bebb2a57028715d380",
        torch="2.13.0",
        transformers=">=5.10.4,<5.18.0",
        transformers_cap="",
        use_existing_torch="tools/use_existing_torch.py",
        rust_toolchain="1.95",
        rust_artifacts=(_SERVER, _TOOL_PARSER),
        needs_protoc=False,
        min_gcc=0,
        min_python=(3, 10),
        flash_attention="9cd61de38763d712bb6ce56e2a02cc2bf718c89f",
        evidence="measured",
    ),
    Version(
        number="0.32.0",
        sdist_sha256="d2c957d5eee3d0985012151315ddc62cbe0cd368fc96a5fc3510438d9dddf2ad",
        torch="2.13.0",
        transformers=">=5.16.1,<5.20.0",
        transformers_cap="",
        use_existing_torch="tools/use_existing_torch.py",
        rust_toolchain="1.95",
        rust_artifacts=(_SERVER,),
        needs_protoc=False,
        min_gcc=13,
        min_python=(3, 11),
        flash_attention="9cd61de38763d712bb6ce56e2a02cc2bf718c89f",
        evidence="measured",
    ),
    Version(
        number="0.33.0",
        sdist_sha256="f4c33c2503d52bb411146afa9618a4f48bed68912f617e6803ac8d76e4c74112",
        torch="2.14.0",
        transformers=">=5.16.1,<5.21.0",
        transformers_cap="",
        use_existing_torch="tools/use_existing_torch.py",
        rust_toolchain="1.95",
        rust_artifacts=(_SERVER,),
        needs_protoc=False,
        min_gcc=13,
        min_python=(3, 11),
        flash_attention="b273a02621d3c94bc747df67204f591b67f38fae",
        evidence="measured",
    ),
)

SUPPORTED: Final = {version.number: version for version in _TABLE}


@dataclass(frozen=True)
class Sdist:
    """A source distribution of vLLM in the Python package index."""

    number: str
    sha256: str


# A version that has a git tag only is locked from, and its patches checked on, the nearest release.
_STAND_INS = {
    "0.27.2rc0": Sdist("0.27.1", "eec2d54d137ac1e59cb4c39226dfee1943eefc8f4788f5821d7300d6acbdb646")
}


def sdist_of(version: Version) -> Sdist:
    """Return the source distribution of a listed version, or of the release nearest to it."""
    if version.sdist_sha256 is None:
        return _STAND_INS[version.number]
    return Sdist(version.number, version.sdist_sha256)


# The versions that a machine without a GPU can be given: real kernels come in a wheel of their own
# there, and of these only 0.32.0 was installed and served from. [measured]
CPU_VERSIONS: Final = ("0.32.0",)


# What a complete build holds and must load, in every listed version. [source] FA2's extension is
# not among them: without its kernels it is there and refuses to load. On the CPU: as installed
# from the 0.32.0 wheel's kernels on x86_64. [measured]
EXTENSIONS: Final[Mapping[Device, tuple[str, ...]]] = {
    "cuda": (
        "vllm._C_stable_libtorch",
        "vllm._moe_C_stable_libtorch",
        "vllm.cumem_allocator",
        "vllm.fs_io_C",
        "vllm.spinloop",
    ),
    "cpu": ("vllm._C", "vllm.fs_io_C", "vllm.spinloop"),
}


# Those of a GPU build that hold kernels; the other extensions are the host's code alone. [source]
KERNEL_LIBRARIES: Final = ("_C_stable_libtorch*.so", "_moe_C_stable_libtorch*.so")

# What upstream's requirements/build/*.txt name but torch: a new version of one of these is a reason
# to compile again, one of anything else in a lock is not. [source]
BUILD_TOOLS: Final = frozenset(
    (
        *("build", "cmake", "jinja2", "ninja", "packaging", "protobuf", "regex"),
        *("setuptools", "setuptools-rust", "setuptools-scm", "wheel"),
    )
)


def lock_of(number: str, device: Device) -> str:
    """Return the file name in files/locks/ of what a version needs; of the nearest if unlisted.

    Raises UnknownVersion for a version that a machine without a GPU cannot be given.
    """
    if device == "cpu" and number not in CPU_VERSIONS:
        raise UnknownVersion(
            f"vLLM {number!r} has no CPU kernels that we know of, wanted one of "
            f"{', '.join(CPU_VERSIONS)}: set vllm_version"
        )
    return f"{_nearest(number).number}-{device}.txt"


def kernels_lock_of(number: str) -> str | None:
    """Return the file name in files/locks/ that names the wheel with a version's CPU kernels."""
    return f"{number}-cpu-kernels.txt" if number in CPU_VERSIONS else None


@dataclass(frozen=True)
class Patch:
    """A file of files/patches/ and the hosts that need it.

    + device: what the host computes on; None for either
    + below: compute capabilities below this one only; None for every one. A host without a GPU
      gets it too: it rehearses the series, and the patch asks for the capability as it runs
    + first, last: the versions that it is for, both included; None leaves that end open
    + half: which half of the build it changes: a "python" patch compiles nothing again
    """

    file: str
    device: Device | None
    below: tuple[int, int] | None
    first: str | None
    last: str | None
    half: Literal["python", "compiled"]

    @property
    def releases(self) -> str:
        """Say which versions it is for, in words."""
        if self.first is not None and self.first == self.last:
            return self.first
        since = self.first or next(iter(SUPPORTED))
        return f"{since} to {self.last or next(reversed(SUPPORTED))}"


# In the order in which they are applied.
PATCHES: Final = (
    Patch("turing-tile-clamp.patch", None, (8, 0), None, None, "python"),
    Patch("no-fa3-extension.patch", "cuda", (8, 0), None, None, "compiled"),
    Patch("no-fa2-kernels.patch", "cuda", (8, 0), None, None, "compiled"),
    Patch("cpu-slot-mapping.patch", "cpu", None, "0.32.0", "0.32.0", "python"),
)


def find(number: str, *, allow_unlisted: bool = False) -> Version:
    """Return what is known of `number` ("0.32.0", no leading v).

    With `allow_unlisted` a version that is not listed takes over what holds for the newest listed
    one below it (or the oldest), less its sdist: nothing of that was checked, and `evidence`
    is "source". Raises UnknownVersion otherwise.
    """
    if number in SUPPORTED:
        return SUPPORTED[number]
    if not allow_unlisted:
        raise UnknownVersion(
            f"vLLM {number!r} is not one of {', '.join(SUPPORTED)}. Choose one of these, or set "
            "allow_unlisted_version to try it: the patches and locks were never checked against it."
        )
    unchecked = replace(_nearest(number), sdist_sha256=None, flash_attention=None)
    return replace(unchecked, number=number, evidence="source")


def _nearest(number: str) -> Version:
    """Return the newest listed version that is not above `number`, or the oldest of all."""
    try:
        wanted = Number(number)
    except InvalidVersion as error:
        raise UnknownVersion(f"vLLM {number!r} is not a version number such as 0.32.0") from error
    older = [version for version in _TABLE if Number(version.number) <= wanted]
    return older[-1] if older else _TABLE[0]


def patches_for(number: str, device: Device, capability: tuple[int, int] | None) -> list[Patch]:
    """Return the patches of a host, in the order in which they are applied.

    `capability` is the GPU's compute capability, (7, 5) for a T4G; None where there is no GPU.
    """
    return [patch for patch in PATCHES if _concerns(patch, Number(number), device, capability)]


def _concerns(
    patch: Patch, number: Number, device: Device, capability: tuple[int, int] | None
) -> bool:
    return (
        patch.device in (None, device)
        and (patch.below is None or capability is None or capability < patch.below)
        and (patch.first is None or number >= Number(patch.first))
        and (patch.last is None or number <= Number(patch.last))
    )
