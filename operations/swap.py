"""A swap file where memory is short: linking vLLM's kernels on 8 GiB dies without."""

import hashlib
from collections.abc import Generator

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.paths import FoundPath
from facts.swap import Swap, SwapFile, SwapState
from operations import filesystem
from operations.answers import ask
from operations.filesystem import File
from operations.steps import Refusal, Step, carry_out

GIB = 1024**3
PAGE = 4096  # bytes; the first page of a swap file is its header and not in /proc/swaps
SPARE = 2 * GIB  # what must stay free beside a new swap file
FSTAB = "/etc/fstab"


def plan(state: SwapState, path: str, size_gib: int, below_gib: int) -> list[Step | Refusal]:
    """Return the steps that bring the swap file about where memory is at most `below_gib`.

    At most, not below: a host sold with 16 GiB is meant, whatever the kernel keeps for itself.
    A size of 0 wants no swap; one that is there is left alone.
    """
    if size_gib == 0 or state["memory"] > below_gib * GIB:
        return []
    size = size_gib * GIB
    entry = fstab_steps(state["fstab"], path)
    wrong = _what_is_wrong(state["file"], size)
    if wrong is not None:
        return [*_rewrite(state, path, size, f"{path} {wrong}"), *entry]
    steps = _mode_steps(state["file"], path)
    if state["active"] != size - PAGE:
        steps += _activation(state, path, size)
    return [*steps, *entry]


def _what_is_wrong(file: SwapFile | None, size: int) -> str | None:
    """Say why the file must be written anew; None: its blocks will do."""
    if file is None:
        return "is missing"
    if not file["regular"]:
        return "is not a regular file"
    if file["bytes"] != size:
        return f"has {file['bytes']} bytes, wanted {size}"
    if file["allocated"] < size:
        return f"has holes: {file['allocated']} of {size} bytes are on disk"
    return None if file["formatted"] else "has no swap signature"


def _rewrite(state: SwapState, path: str, size: int, reason: str) -> list[Step | Refusal]:
    file, quoted = state["file"], QuoteString(path)
    reclaimed = file["allocated"] if file is not None else 0
    if file is not None and not file["regular"]:
        return [Refusal(f"{reason}. Look at it, and move it away.")]
    if state["free"] + reclaimed < size + SPARE:
        return [
            Refusal(
                f"{reason}, and its file system has {(state['free'] + reclaimed) / GIB:.1f} GiB to "
                f"give, wanted {(size + SPARE) / GIB:.0f}. Grow the volume, or lower swap_gib."
            )
        ]
    off = [Step(f"{reason}: swap on it is off first", _off(path))] if state["active"] else []
    # dd and not fallocate: on XFS and btrfs fallocate leaves what swapon calls holes.
    write = StringCommand(
        *("umask", "077", "&&", "rm", "-f", "--", quoted, "&&"),
        *("dd", "if=/dev/zero", StringCommand("of=", quoted, _separator=""), "bs=1M"),
        *(f"count={size // 1024**2}", "status=none", "&&", "mkswap", quoted),
    )
    return [*off, Step(reason, write), Step(f"swap on {path} is off", _on(path))]


def _mode_steps(file: SwapFile | None, path: str) -> list[Step | Refusal]:
    if file is None or (file["mode"] == "600" and file["owner"] == 0):
        return []
    quoted = QuoteString(path)
    return [
        Step(
            f"{path} has mode {file['mode']} and owner {file['owner']}, wanted 600 and 0: "
            "whoever reads it reads memory",
            StringCommand("chown", "0:0", "--", quoted, "&&", "chmod", "600", "--", quoted),
        )
    ]


def _activation(state: SwapState, path: str, size: int) -> list[Step | Refusal]:
    if state["active"] is None:
        return [Step(f"swap on {path} is off", _on(path))]
    found = f"{state['active']} of {size - PAGE} bytes of {path} are in use as swap"
    return [Step(found, StringCommand(_off(path), "&&", _on(path)))]


def _off(path: str) -> StringCommand:
    return StringCommand("swapoff", QuoteString(path))


def _on(path: str) -> StringCommand:
    return StringCommand("swapon", QuoteString(path))


def fstab_steps(text: str, path: str) -> list[Step | Refusal]:
    """Return the step that leaves exactly one good line for the swap file in fstab."""
    wanted = fstab_with(text, path)
    if wanted == text:
        return []
    found: FoundPath = {
        "kind": "file",
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "content": text,
    }
    return filesystem.plan({FSTAB: found}, [File(FSTAB, wanted)])


def fstab_with(text: str, path: str) -> str:
    """Return fstab with one line for the swap file; every other line stays byte for byte."""
    entry = f"{path} none swap sw 0 0"
    lines = text.splitlines(keepends=True)
    ours = [line for line in lines if line.split()[:1] == [path]]
    if [line.split() for line in ours] == [entry.split()]:
        return text
    kept = "".join(line for line in lines if line not in ours)
    gap = "" if not kept or kept.endswith("\n") else "\n"
    return f"{kept}{gap}{entry}\n"


@operation()
def present(path: str, size_gib: int, below_gib: int) -> Generator[PyinfraCommand, None, None]:
    """Have an active swap file, after each boot too, where memory is at most `below_gib`.

    + path: of the swap file; its directory must exist
    + size_gib: its size in GiB, all of it written
    + below_gib: hosts with more memory than this many GiB are left alone
    """
    state = ask(Swap, path=path)
    settled = f"{state['memory'] / GIB:.0f} GiB of memory, swap as it should be"
    yield from carry_out(plan(state, path, size_gib, below_gib), settled=settled)
