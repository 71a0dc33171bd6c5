"""A pinned Rust toolchain below one folder, installed by a pinned and checked rustup-init."""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.rust import Rust, RustState
from operations.answers import ask
from operations.live import Live
from operations.programs import alone, program
from operations.steps import Refusal, Step, carry_out, refuse

TRIPLES = {"aarch64": "aarch64-unknown-linux-gnu", "x86_64": "x86_64-unknown-linux-gnu"}


@dataclass(frozen=True)
class Rustup:
    """Where rustup-init comes from, and what it must be.

    `sha256` is by triple; one that is missing there is checked only against the checksum that
    upstream publishes beside the file. `archive_url` ends before the version; `dist_server` is
    where the toolchain comes from (None: rustup's own).
    """

    version: str
    sha256: Mapping[str, str]
    archive_url: str = "https://static.rust-lang.org/rustup/archive"
    dist_server: str | None = None

    def url(self, triple: str) -> str:
        return f"{self.archive_url.rstrip('/')}/{self.version}/{triple}/rustup-init"


def environment(home: str) -> dict[str, str]:
    """Return what a build must export to use the toolchain below `home`."""
    return {"RUSTUP_HOME": f"{home}/rustup", "CARGO_HOME": f"{home}/cargo"}


def plan(state: RustState, home: str, toolchain: str, rustup: Rustup) -> list[Step | Refusal]:
    """Return the steps that bring a working toolchain about; what is half there goes first."""
    fault = _fault(state, toolchain)
    if fault is None:
        return []
    triple = TRIPLES.get(state["machine"])
    if triple is None:
        return [
            Refusal(
                f"Rust {toolchain}: {fault}, and no rustup-init is known for the machine "
                f"{state['machine']!r}, wanted one of {', '.join(TRIPLES)}."
            )
        ]
    install = Step(
        f"Rust {toolchain} is to be installed: {fault}", _install(home, toolchain, rustup, triple)
    )
    check = _check(home, toolchain, triple)
    return [*_removal(state, home, toolchain, triple, fault), install, check]


def _fault(state: RustState, toolchain: str) -> str | None:
    if not state["directory"]:
        return "it is not there"
    if state["rustc"] is None:
        return "its directory is there, but rustc does not run"
    if not f"{state['rustc']}.".startswith(f"{toolchain}."):
        return f"rustc is {state['rustc']}"
    if not state["standard_library"]:
        return "it has no standard library"
    return None if state["cargo"] is not None else "cargo does not run"


def _removal(
    state: RustState, home: str, toolchain: str, triple: str, fault: str
) -> list[Step | Refusal]:
    """rustup takes a toolchain whose manifest is there for installed, whatever else is missing.

    What looked broken may have been another run's that was not done yet: after the wait for that
    one, only what still is as it was found goes.
    """
    if not state["directory"]:
        return []
    name = f"{toolchain}-{triple}"
    paths = [f"{home}/rustup/{part}/{name}" for part in ("toolchains", "update-hashes")]
    found = StringCommand('"$(', program("facts/rust.py", home, toolchain), ')"')
    remove = StringCommand(
        *("test", found, "!=", QuoteString(json.dumps(state)), "||"),
        *("rm", "-rf", "--", *map(QuoteString, paths)),
    )
    return [Step(f"the toolchain {name} is broken: {fault}", Live(alone(remove, home)))]


def _install(home: str, toolchain: str, rustup: Rustup, triple: str) -> StringCommand:
    """Run the checked rustup-init. It warns of a Rust that the distribution has, and goes on."""
    init = f"{home}/rustup-init"
    pin = rustup.sha256.get(triple, "-")
    settings = {**environment(home), "RUSTUP_INIT_SKIP_PATH_CHECK": "yes"}
    if rustup.dist_server is not None:
        settings["RUSTUP_DIST_SERVER"] = rustup.dist_server
    install = StringCommand(
        *(program("actions/fetch.py", "--published", rustup.url(triple), init, pin), "&&"),
        *("env", *(QuoteString(f"{key}={value}") for key, value in settings.items())),
        *(QuoteString(init), "-y", "--no-modify-path", "--profile", "minimal"),
        *("--default-toolchain", QuoteString(toolchain), "&&", "rm", "-f", "--", QuoteString(init)),
    )
    folder = StringCommand("umask", "022", "&&", "mkdir", "-p", "--", QuoteString(home))
    return Live(StringCommand(folder, "&&", alone(install, home)))


def _check(home: str, toolchain: str, triple: str) -> Step:
    rustc = f"{home}/rustup/toolchains/{toolchain}-{triple}/bin/rustc"
    message = f"rustup-init ended, but {rustc} is not version {toolchain}."
    command = StringCommand(
        *(QuoteString(rustc), "--version", "|", "grep", "-E"),
        QuoteString(rf"^rustc {toolchain.replace('.', '[.]')}([. ]|$)"),
        *("||", "{", refuse(message), ";", "}"),
    )
    return Step(f"{rustc} must be version {toolchain}", command)


@operation()
def present(home: str, toolchain: str, rustup: Rustup) -> Generator[PyinfraCommand, None, None]:
    """Have a toolchain whose rustc, cargo and standard library work.

    + home: rustup/ (RUSTUP_HOME) and cargo/ (CARGO_HOME) lie in it
    + toolchain: the version as rust-toolchain.toml names it, such as "1.95"
    + rustup: the installer; the one that is there is not replaced for its version alone
    """
    state = ask(Rust, home=home, toolchain=toolchain)
    settled = f"Rust {state['rustc']} below {home} works"
    yield from carry_out(plan(state, home, toolchain, rustup), settled=settled)
