"""Proof, before an hour of building, that the tree's attention kernels fit the GPU.

A vLLM version that needs another clamp is found here in minutes, by the host's own Triton, and not
by the first request.
"""

import hashlib
import json
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.attention import Attention, FoundAttention
from operations.answers import ask
from operations.filesystem import Directory, Entry, File
from operations.live import Live
from operations.steps import Refusal, Step, carry_out

PROBE = Path(__file__).resolve().parent.parent / "files" / "probes" / "shared_memory"


@dataclass(frozen=True)
class Check:
    """What to compile, and what it may take.

    + source: digest of what the tree is made from
    + capability: compute capability to compile for, "7.5"
    + limit: bytes of shared memory that a block may take there
    + run: also run the kernels on the GPU and compare them with plain torch
    """

    tree: str
    source: str
    python: str
    capability: str = "7.5"
    limit: int = 65536
    run: bool = True


def program_files(directory: str) -> list[Entry]:
    """Return the probe as managed files below `directory`, which is there already."""
    modules = sorted(PROBE.glob("*.py"))
    folder = f"{directory}/{PROBE.name}"
    return [
        Directory(folder),
        *(File(f"{folder}/{path.name}", path.read_text()) for path in modules),
    ]


def digest_of(check: Check, triton: str) -> str:
    """Return one digest of what is checked, what is demanded, and what checks it."""
    programs = {path.name: path.read_text() for path in PROBE.glob("*.py")}
    checked = [asdict(check), triton, programs]
    return hashlib.sha256(json.dumps(checked, sort_keys=True).encode()).hexdigest()


def command(check: Check, directory: str, record: str, digest: str) -> StringCommand:
    """Return the command that checks and records; what does not fit it says on stderr."""
    options = {
        "capability": check.capability,
        "limit": check.limit,
        "record": record,
        "digest": digest,
        **({"numerics": "cuda"} if check.run else {}),
    }
    return StringCommand(
        *("cd", QuoteString(directory), "&&", QuoteString(check.python), "-B", "-m", PROBE.name),
        *(QuoteString(f"--{name}={value}") for name, value in options.items()),
        *("--", QuoteString(check.tree), ">/dev/null"),
    )


def plan(
    found: FoundAttention | None, check: Check, directory: str, record: str
) -> list[Step | Refusal]:
    """Return the step that checks the tree, unless just this was checked and passed."""
    if found is None:
        return [Refusal(f"found no {check.python}, wanted the interpreter with torch: set python.")]
    if found["triton"] is None:
        return [
            Refusal(
                f"found no triton in {check.python}, wanted the one that its torch requires: vLLM "
                "cannot serve on this GPU without it. Use the image that group_data/all.py names."
            )
        ]
    digest = digest_of(check, found["triton"])
    if found["digest"] == digest:
        return []
    was = "were never checked" if found["digest"] is None else "have changed since their last check"
    reason = f"{check.tree}: the attention kernels {was} for {check.capability}"
    return [Step(reason, Live(command(check, directory, record, digest)))]


@operation()
def fits(check: Check, directory: str, record: str) -> Generator[PyinfraCommand, None, None]:
    """Have it on record that the tree's attention kernels fit and compute what plain torch does.

    + directory: where `program_files` put the probe
    + record: the JSON file on the host that keeps the result; written only where it is good
    """
    found = ask(Attention, record=record, python=check.python)
    settled = f"the attention kernels fit {check.limit:,} bytes of shared memory"
    yield from carry_out(plan(found, check, directory, record), settled=settled)
