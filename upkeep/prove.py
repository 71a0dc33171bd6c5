"""Compile and run the attention kernels of released versions, stock and patched, with no GPU.

    python -m upkeep.prove [NUMBER...]

Prints a table for each version and exits 1 where a patched launch would not fit compute capability
7.5, where the patch changes the code for 8.0, or where it computes something else.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from files.probes.shared_memory.verdict import faults, launch
from upkeep.environment import interpreter
from upkeep.trees import patched, stock
from versions import SUPPORTED, Version, patches_for, sdist_of

PROBES: Final = Path(__file__).resolve().parent.parent / "files" / "probes"
LIMIT: Final = 65536  # bytes of shared memory that a block may have on 7.5 [field]


class ProbeFailed(RuntimeError):
    """The probe could not say anything about a tree."""


def probe(tree: Path, *options: str) -> dict[str, Any]:
    """Return what `files/probes/shared_memory` says of a tree."""
    command = [str(interpreter()), "-B", "-m", "shared_memory", str(tree), *options]
    answer = subprocess.run(command, cwd=PROBES, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise ProbeFailed(f"{tree.name} {' '.join(options)}: {answer.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


@dataclass(frozen=True)
class Proof:
    """What was found for one version; each list is in the order of the launches."""

    version: Version
    triton: str
    stock: list[dict[str, Any]]  # kernels compiled for 7.5
    patched: list[dict[str, Any]]
    stock_ampere: list[dict[str, Any]]  # and for 8.0
    patched_ampere: list[dict[str, Any]]
    stock_errors: list[dict[str, Any]]  # against plain torch, interpreted
    patched_errors: list[dict[str, Any]]

    def faults(self) -> Iterator[str]:
        """Yield what does not hold of the patched version."""
        yield from faults(self.patched, self.patched_errors, LIMIT)
        if self.stock_ampere != self.patched_ampere:
            yield "the patch changes what is compiled for 8.0"

    def table(self) -> Iterator[str]:
        """Yield the lines of a table for people."""
        source = sdist_of(self.version).number
        number = self.version.number
        made_on = number if source == number else f"{number} (on the source of {source})"
        yield f"vLLM {made_on}, Triton {self.triton}, bytes of {LIMIT:,} a block"
        yield f"{'kernel':44} {'stock':>18} {'patched':>18}  8.0"
        kernels = zip(
            *(self.stock, self.patched, self.stock_ampere, self.patched_ampere), strict=True
        )
        for before, after, old, new in kernels:
            same = "same code" if old == new else "CHANGED"
            name = f"{launch(before)} {before['kernel']}"
            yield f"{name:44} {_bytes(before):>18} {_bytes(after):>18}  {same}"
        yield f"{'relative error against plain torch':44}"
        for error, repaired in zip(self.stock_errors, self.patched_errors, strict=True):
            stock, fixed = f"{error['relative_error']:.1e}", f"{repaired['relative_error']:.1e}"
            yield f"{launch(error):44} {stock:>18} {fixed:>18}"


def prove(version: Version, folder: Path) -> Proof:
    """Return the proof for one version, made in an empty folder."""
    before = stock(version, folder / "stock")
    after = patched(before, folder / "patched", patches_for(version.number, "cuda", (7, 5)))
    compiled = probe(before)
    return Proof(
        version,
        compiled["triton"],
        compiled["kernels"],
        probe(after)["kernels"],
        probe(before, "--capability=8.0")["kernels"],
        probe(after, "--capability=8.0")["kernels"],
        probe(before, "--numerics=cpu")["compared"],
        probe(after, "--numerics=cpu")["compared"],
    )


def _bytes(kernel: dict[str, Any]) -> str:
    over = " over" if kernel["shared"] > LIMIT else ""
    return f"TILE {kernel['tile']} {kernel['shared']:,}{over}"


def main(numbers: list[str]) -> int:
    """Print the proofs of the numbers given, or of every listed version; return the exit code."""
    found = 0
    for number in numbers or SUPPORTED:
        with tempfile.TemporaryDirectory() as folder:
            proof = prove(SUPPORTED[number], Path(folder))
        print(*proof.table(), "", sep="\n")
        for fault in proof.faults():
            found += 1
            print(f"vLLM {number}: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
