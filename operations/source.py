"""The vLLM source tree: a pinned tag, the host's torch kept, our patches, one commit on top."""

import hashlib
import json
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from facts.source import FoundTree, SourceTree
from operations.answers import ask
from operations.live import Live
from operations.programs import alone, program
from operations.steps import Step, carry_out

BRANCH = "vllm-g5g"


@dataclass(frozen=True)
class Patch:
    """A patch file.

    + versions: which releases it is for, in words
    + compiled: whether it changes what is compiled, and not Python alone
    """

    name: str
    text: str
    versions: str
    compiled: bool


@dataclass(frozen=True)
class Source:
    """Everything that the tree is made from."""

    repository: str
    tag: str
    torch_script: str  # path in the tree of upstream's use_existing_torch.py
    patches: tuple[Patch, ...]

    def digest(self) -> str:
        """Return the hex digest that names this source; the mirror it comes from is no part."""
        return _digest([self.tag, self.torch_script], self.patches)

    def compiled_digest(self) -> str:
        """Return the hex digest of what a compiler may come to see of it."""
        compiled = [patch for patch in self.patches if patch.compiled]
        return _digest([self.tag, self.torch_script], compiled)

    def python_digest(self) -> str:
        """Return the hex digest of the patches that no compiler sees."""
        return _digest([], [patch for patch in self.patches if not patch.compiled])


def plan(found: FoundTree | None, source: Source, tree: str, python: str) -> list[Step]:
    """Return at most one step, whose reason says all that is wrong with the tree."""
    faults = ["is missing"] if found is None else _faults(found, source)
    if not faults:
        return []
    spec = {
        **asdict(source),
        "tree": tree,
        "branch": BRANCH,
        "python": python,
        "inputs": source.digest(),
    }
    command = program("source/prepare_tree.py", stdin=json.dumps(spec))
    # Held by its parent: the tree itself may be gone.
    alone_there = alone(command, str(PurePosixPath(tree).parent))
    return [Step(f"{tree} {'; '.join(faults)}", Live(alone_there))]


@operation()
def prepared(source: Source, tree: str, python: str) -> Generator[PyinfraCommand, None, None]:
    """Bring the tree to the tag, run use_existing_torch.py, apply the patches, commit.

    HEAD is a function of the inputs: the same on every host. Stray files and local edits go;
    ignored files (a build's objects) stay. Where the tag moved upstream, the tree keeps the commit
    that it was first fetched at.
    """
    found = ask(SourceTree, tree=tree, tag=source.tag)
    settled = f"{tree} is {source.tag} with {len(source.patches)} patches"
    yield from carry_out(plan(found, source, tree, python), settled=settled)


def _digest(parts: list[str], patches: Iterable[Patch]) -> str:
    named = [part for patch in patches for part in (patch.name, patch.text)]
    return hashlib.sha256(json.dumps([*parts, *named]).encode()).hexdigest()


def _faults(found: FoundTree, source: Source) -> list[str]:
    faults = []
    if found["inputs"] != source.digest():
        faults.append(f"is not {source.tag} with our patches")
    elif found["parent"] != found["tag_commit"]:
        faults.append(f"does not stand on {source.tag}")
    elif found["head"] != found["recorded_head"]:
        wanted = found["recorded_head"][:12] or "one that we prepared"
        faults.append(f"is at commit {found['head'][:12]}, wanted {wanted}")
    if found["repository"] != source.repository:
        faults.append(f"comes from {found['repository']}, wanted {source.repository}")
    if found["change_count"]:
        faults.append(f"has {found['change_count']} local changes: {', '.join(found['changes'])}")
    return faults
