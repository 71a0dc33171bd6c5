"""How much memory a host has, and the state of one swap file."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class SwapFile(TypedDict):
    """What lies at the swap file's path; sizes in bytes."""

    regular: bool
    bytes: int
    allocated: int  # less than `bytes`: it has holes, and the kernel refuses it
    mode: str  # octal digits
    owner: int
    formatted: bool  # carries mkswap's signature


class SwapState(TypedDict):
    """The answer of files/facts/swap.py; sizes in bytes."""

    memory: int
    file: SwapFile | None
    active: int | None  # in use from this file; None: swap is off
    fstab: str
    free: int  # on the file system the swap file lies on


class Swap(FactBase[SwapState]):
    """Memory, and one swap file: its blocks, its mode, whether it is in use and in fstab."""

    def command(self, path: str) -> StringCommand:
        return program("swap.py", path)

    def process(self, output: list[str]) -> SwapState:
        state: SwapState = answer(output)
        return state
