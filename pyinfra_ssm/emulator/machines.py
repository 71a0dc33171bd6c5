"""Where an emulated instance runs its commands: in a container, or on this machine."""

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyinfra_ssm.emulator.stand_ins import StandIns

SSM_USER = "ssm-user"  # whom the agent creates for sessions, with NOPASSWD sudo
# Names the session in the environment of its processes on this machine, so that they can be found
# again; the real agent sets no such variable.
MARK = "SSM_EMULATOR_SESSION"
# In a container a shell stays above the command, with the mark in its arguments: they can be read
# by everybody, while not even root can read the environment of sudo without CAP_SYS_PTRACE.
_KEEPER = ["sh", "-c", '"$@"; exit $?']
_KEEPER_NAME = "ssm-emulator:"
_TERMINAL_ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}

# $1: beginning of the mark. Print the ids of processes that have it, oldest first.
_FIND_BY_ENVIRONMENT = (
    f"""cd /proc && grep -lzs "^{MARK}=$1" [0-9]*/environ | cut -d/ -f1 | sort -n"""
)
# The engine's client has the same argument, and shows up where it shares the process ids.
_FIND_KEEPERS = f"""cd /proc
for pid in $(grep -lzs "^{_KEEPER_NAME}$1" [0-9]*/cmdline | cut -d/ -f1 | sort -n); do
    [ "$(head -c 2 "$pid/cmdline")" != sh ] || echo "$pid"
done"""
# ... $2: signal, for the command below the first keeper.
_SIGNAL_KEPT = f"""keeper=$({_FIND_KEEPERS} | head -n 1)
[ -n "$keeper" ] && kill -s "$2" $(cat "/proc/$keeper/task/$keeper/children") """
# $@: process ids. Their descendants go too: what runs below sudo has lost the mark.
_KILL_TREES = """
tree() {
    for pid in "$@"; do echo "$pid"; done
    for pid in "$@"; do tree $(cat /proc/"$pid"/task/*/children 2>/dev/null); done
}
kill -s KILL $(tree "$@") 2>/dev/null
"""


class Machine(Protocol):
    """What the agent needs of the operating system that it runs on."""

    find_script: str  # prints the ids of the processes whose mark begins with $1

    def command(
        self, argv: Sequence[str], *, mark: str, elevated: bool, terminal: bool, cwd: str = "/"
    ) -> list[str]:
        """Return the argv, to be run on this machine, that runs `argv` on the machine meant."""

    def environment(self, mark: str) -> dict[str, str]:
        """Return the environment for what command() returned."""

    def close(self) -> None:
        """Remove what was made on this machine."""


class ThisMachine:
    """Runs commands here, as the user who runs the emulator, with stand-ins for what must not run
    here or is missing here (see stand_ins.py); `reboot_url` is where `reboot` asks for one."""

    find_script = _FIND_BY_ENVIRONMENT

    def __init__(self, extra: Mapping[str, str], reboot_url: str) -> None:
        self._extra = dict(extra)
        self._stand_ins = StandIns(reboot_url)

    def command(
        self, argv: Sequence[str], *, mark: str, elevated: bool, terminal: bool, cwd: str = "/"
    ) -> list[str]:
        del mark, terminal
        root = ["sudo", "-n", "--"] if elevated and os.geteuid() != 0 else []
        return ["env", "-C", cwd, *root, *argv]

    def environment(self, mark: str) -> dict[str, str]:
        ours = {"HOME": os.environ.get("HOME", "/"), "PATH": os.environ.get("PATH", os.defpath)}
        variables = _TERMINAL_ENVIRONMENT | ours | self._extra | {MARK: mark}
        return variables | {"PATH": self._stand_ins.around(variables["PATH"])}

    def close(self) -> None:
        self._stand_ins.remove()


class Container:
    """Runs commands in a running podman or Docker container, as ssm-user where that user exists.

    `engine` is the command line of the engine, for example `podman --runtime runc`.
    """

    find_script = _FIND_KEEPERS

    def __init__(self, name: str, engine: str, extra: Mapping[str, str]) -> None:
        self._name = name
        self._engine = shlex.split(engine)
        self._extra = dict(extra)
        self._user: str | None = None

    async def find_user(self) -> None:
        """Look for ssm-user once; raise RuntimeError if the container does not answer."""
        found, said = await _run([*self._engine, "exec", self._name, "id", SSM_USER])
        if found and "no such user" not in said.lower():
            raise RuntimeError(
                f"container {self._name} runs no commands: {said.strip() or found}; "
                f"is it up? ({shlex.join([*self._engine, 'ps'])})"
            )
        self._user = None if found else SSM_USER

    def command(
        self, argv: Sequence[str], *, mark: str, elevated: bool, terminal: bool, cwd: str = "/"
    ) -> list[str]:
        user = "root" if elevated or self._user is None else self._user
        home = "/root" if user == "root" else f"/home/{user}"
        variables = _TERMINAL_ENVIRONMENT | {"HOME": home} | self._extra
        flags = ["--interactive", "--tty"] if terminal else []
        env = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
        where = ["--user", user, "--workdir", cwd]
        keeper = [*_KEEPER, _KEEPER_NAME + mark] if mark else []
        return [*self._engine, "exec", *flags, *where, *env, self._name, *keeper, *argv]

    def environment(self, mark: str) -> dict[str, str]:
        del mark  # is in the command; the engine itself keeps our environment
        return dict(os.environ)

    def close(self) -> None:
        """Nothing of ours is in the container."""


@dataclass(frozen=True)
class Place:
    """Where the processes of one session or command run, under which mark, and as whom."""

    machine: Machine
    mark: str
    elevated: bool

    def command(self, argv: Sequence[str], *, terminal: bool = False, cwd: str = "/") -> list[str]:
        return self.machine.command(
            argv, mark=self.mark, elevated=self.elevated, terminal=terminal, cwd=cwd
        )

    def environment(self) -> dict[str, str]:
        return self.machine.environment(self.mark)

    async def has_program(self, program: str) -> bool:
        """Say whether there is a program on the PATH."""
        look = ["sh", "-c", 'command -v -- "$1"', "sh", program]
        argv = self.machine.command(look, mark="", elevated=self.elevated, terminal=False)
        return (await _run(argv, self.machine.environment("")))[0] == 0


async def signal_in_container(place: Place, signal: int) -> None:
    """Send a signal to the command itself, and to nothing that it started."""
    await _script(place.machine, _SIGNAL_KEPT, place.mark, str(signal), elevated=True)


async def kill_as_root(machine: Machine, pid: int) -> None:
    """Kill a process of this machine that has become root's."""
    await _run(machine.command(["kill", "-9", str(pid)], mark="", elevated=True, terminal=False))


async def reap(machine: Machine, mark: str) -> None:
    """Kill every process whose mark begins with `mark`, and what they started."""
    _, printed = await _script(machine, machine.find_script, mark, elevated=True)
    if found := printed.split():
        await _script(machine, _KILL_TREES, *found, elevated=True)


async def _script(
    machine: Machine, script: str, *arguments: str, elevated: bool
) -> tuple[int, str]:
    argv = ["sh", "-c", script, "sh", *arguments]
    return await _run(machine.command(argv, mark="", elevated=elevated, terminal=False))


async def _run(
    argv: Sequence[str], environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode(errors="replace")
