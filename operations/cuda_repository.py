"""NVIDIA's apt repository: one source, and the pinned key."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.apt_sources import Source, parse, without
from facts.cuda import CudaRepository, RepositoryState
from operations import filesystem
from operations.answers import ask
from operations.apt import apt_run
from operations.cuda_toolkit import Toolkit, is_whole
from operations.filesystem import Absent, File
from operations.programs import program
from operations.steps import Refusal, Step, carry_out

# NVIDIA's name for a dpkg architecture. The x86_64 path on an Arm host is only noticed much later,
# as a package without a candidate.
ARCHITECTURES = {"arm64": "sbsa", "amd64": "x86_64"}
KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"  # as the cuda-keyring package has it
DOWNLOADS = "/var/cache/apt/archives"


@dataclass(frozen=True)
class Repository:
    """Where NVIDIA's packages come from, and what proves that they are NVIDIA's.

    `base_url` ends before the distribution; `keyring_sha256` is by path below it, as in
    {"ubuntu2404/sbsa": "6ea7..."}; `fingerprint` is of the signing key, 40 upper-case hex digits.
    """

    base_url: str
    keyring_version: str
    keyring_sha256: Mapping[str, str]
    fingerprint: str

    @property
    def mark(self) -> str:
        """The path that every distribution's repository has in common, mirrors included."""
        return f"{urlsplit(self.base_url).path.rstrip('/')}/"

    def url(self, path: str) -> str:
        return f"{self.base_url.rstrip('/')}/{path}/"


def repository_path(state: RepositoryState) -> str | None:
    """Return the path of this host's repository below the base, such as "ubuntu2404/sbsa"."""
    architecture = ARCHITECTURES.get(state["architecture"])
    distribution = state["release"]["ID"] + state["release"]["VERSION_ID"].replace(".", "")
    return f"{distribution}/{architecture}" if architecture else None


def plan(state: RepositoryState, repository: Repository, toolkit: Toolkit) -> list[Step | Refusal]:
    """Return the steps that leave one source for the repository, and its key.

    An image that carries the toolkit already is left as it is, as long as apt can live with that.
    """
    path = repository_path(state)
    if path is None:
        return [
            Refusal(
                f"NVIDIA has no CUDA repository for the architecture {state['architecture']!r}, "
                f"wanted one of {', '.join(ARCHITECTURES)}."
            )
        ]
    if is_whole(state["toolkit"], toolkit) and _is_not_ours(state, repository):
        return []
    return [
        *_source_steps(state, repository, path),
        *_keyring_steps(state, repository, path),
    ]


def _is_not_ours(state: RepositoryState, repository: Repository) -> bool:
    """Say whether the repository is an image's own, or none, and does not stand in apt's way.

    Two sources with different keys for one URL end every apt command, and one that names a key
    which is not there ends every update.
    """
    found = [source for _, source in _sources(state, repository)]
    keyless = any(source.signed_by == KEYRING for source in found) and not state["fingerprints"]
    return state["keyring"] is None and len(found) < 2 and not keyless


def _sources(state: RepositoryState, repository: Repository) -> list[tuple[str, Source]]:
    """Return file and source of all that is in the repository, for any distribution."""
    return [
        (file, source)
        for file, found in state["sources"].items()
        for source in parse(file, found["content"])
        if repository.mark in source.uri
    ]


def _source_steps(
    state: RepositoryState, repository: Repository, path: str
) -> list[Step | Refusal]:
    # The name is that of NVIDIA's package, which would put its own file there.
    own = f"/etc/apt/sources.list.d/cuda-{path.replace('/', '-')}.list"
    wanted = Source(repository.url(path), "/", KEYRING)
    by_file: dict[str, list[Source]] = {}
    for file, source in _sources(state, repository):
        by_file.setdefault(file, []).append(source)
    steps: list[Step | Refusal] = []
    for file in sorted(set(by_file) - {own}):
        uris = ", ".join(source.uri for source in by_file[file])
        text = without(file, state["sources"][file]["content"], lambda uri: repository.mark in uri)
        steps += _written(state, file, text, f"{file} names {uris}, which belongs in {own}")
    if by_file.get(own) != [wanted]:
        line = f"deb [signed-by={KEYRING}] {wanted.uri} /\n"
        steps += _written(state, own, line, f"{own} must name {wanted.uri} alone")
    return steps


def _written(state: RepositoryState, file: str, text: str, reason: str) -> list[Step | Refusal]:
    """Return the step that gives a source file its text; no text: no file."""
    found = state["sources"].get(file, {"kind": "absent"})
    whole = text if text.endswith("\n") else f"{text}\n"
    planned = filesystem.plan({file: found}, [File(file, whole) if text else Absent(file)])
    return [replace(step, reason=reason) if isinstance(step, Step) else step for step in planned]


def _keyring_steps(
    state: RepositoryState, repository: Repository, path: str
) -> list[Step | Refusal]:
    reason = _keyring_fault(state, repository)
    if reason is None:
        return []
    newer = not state["keyring_is_older"] and state["keyring"] != repository.keyring_version
    if state["keyring"] and newer and state["fingerprints"]:
        return [Refusal(f"{reason}. Has NVIDIA changed its key? Check cuda_key_fingerprint.")]
    pin = repository.keyring_sha256.get(path)
    if pin is None:
        return [
            Refusal(
                f"{reason}, and no SHA-256 of the keyring package for {path} is pinned. Add it to "
                "cuda_keyring_sha256 after comparing it with a trusted copy."
            )
        ]
    return [Step(reason, _keyring_installation(repository, path, pin))]


def _keyring_fault(state: RepositoryState, repository: Repository) -> str | None:
    """Say what is wrong with the installed key; a newer keyring package with the key is fine."""
    if state["keyring"] is None:
        return "the cuda-keyring package is not installed"
    if state["keyring_is_older"]:
        return f"cuda-keyring is {state['keyring']}, wanted {repository.keyring_version}"
    if repository.fingerprint not in state["fingerprints"]:
        held = ", ".join(state["fingerprints"]) or "no key"
        return f"{KEYRING} holds {held}, wanted {repository.fingerprint}"
    return None


def _keyring_installation(repository: Repository, path: str, pin: str) -> StringCommand:
    """dpkg, not apt: it works while the sources are still in conflict.

    Configuration files that somebody removed come back, those changed on purpose stay.
    """
    name = f"cuda-keyring_{repository.keyring_version}_all.deb"
    file = f"{DOWNLOADS}/{name}"
    unpack = ("dpkg", "--force-confmiss,confold", "--install", file)
    return StringCommand(
        *(program("actions/fetch.py", repository.url(path) + name, file, pin), "&&"),
        *(apt_run(unpack), "&&", "rm", "-f", "--", QuoteString(file)),
    )


@operation()
def present(repository: Repository, toolkit: Toolkit) -> Generator[PyinfraCommand, None, None]:
    """Have one apt source for NVIDIA's repository, signed by the pinned key.

    Comes before any other use of apt: a second source with another key stops all of it.
    """
    state = ask(
        CudaRepository,
        mark=repository.mark,
        keyring_version=repository.keyring_version,
        package=toolkit.package,
        home=toolkit.home,
        files=toolkit.files,
    )
    settled = "one source with the pinned key, or none and an image that has the toolkit"
    yield from carry_out(plan(state, repository, toolkit), settled=settled)
