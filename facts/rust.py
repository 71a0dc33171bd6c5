"""Whether a Rust toolchain works."""

from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class RustState(TypedDict):
    """The answer of files/facts/rust.py."""

    machine: str  # as uname has it: "aarch64", "x86_64"
    directory: bool  # the toolchain's own is there, whole or not
    rustc: str | None  # the version that it reports; None: it does not run
    cargo: str | None  # the same of cargo, called by way of rustup
    standard_library: bool


class Rust(FactBase[RustState]):
    """One toolchain below `home`, where rustup/ and cargo/ lie: what of it runs."""

    def command(self, home: str, toolchain: str) -> StringCommand:
        return program("rust.py", home, toolchain)

    def process(self, output: list[str]) -> RustState:
        state: RustState = answer(output)
        return state
