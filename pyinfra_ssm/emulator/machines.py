"""Where an emulated instance runs its commands: in a container, or on this machine."""

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyinfra_ssm.emulator.stand_ins import StandIns

SSM_USER = "ssm-user"  # whom the agent creates for sessions, with NOPASSWD sudo
# Names the session in the environment of its processes, so that they can be found again; the real
# agent sets no such variable.
MARK = "SSM_EMULATOR_SESSION"
_TERMINAL_ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}

# $1: beginning of the mark, $2: signal, $3: how many processes, oldest first; 0 for all. Exit
# status 1 if there is none.
_SIGNAL_SCRIPT = f"""
cd /proc
pids=$(grep -lzs "^{MARK}=$1" [0-9]*/environ | cut -d/ -f1 | sort -n)
[ -n "$pids" ] || exit 1
[ "$3" = 0 ] || pids=$(echo "$pids" | head -n "$3")
for pid in $pids; do kill -s "$2" "$pid" 2>/dev/null; done
exit 0
"""


class Machine(Protocol):
    """What the agent needs of the operating system that it runs on."""

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
        variables = _TERMINAL_ENVIRONMENT | {"HOME": home} | self._extra | {MARK: mark}
        flags = ["--interactive", "--tty"] if terminal else []
        env = [part for name, value in variables.items() for part in ("--env", f"{name}={value}")]
        where = ["--user", user, "--workdir", cwd]
        return [*self._engine, "exec", *flags, *where, *env, self._name, *argv]

    def environment(self, mark: str) -> dict[str, str]:
        del mark  # goes to the container by --env; the engine itself keeps our environment
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

    async def signal(self, signal: str, at_most: int) -> None:
        """Signal the oldest of these processes, at most so many of them; 0 is no limit.

        Their own user looks for them, then root, whom `exec sudo` has made one or the other: in a
        container that is not privileged, root cannot read the environment of another user.
        """
        script = ["sh", "-c", _SIGNAL_SCRIPT, "sh", self.mark, signal, str(at_most)]
        for elevated in (self.elevated, True):
            look = self.machine.command(script, mark="", elevated=elevated, terminal=False)
            found = (await _run(look))[0] == 0
            if found and at_most:
                return

    async def has_program(self, program: str) -> bool:
        """Say whether there is a program on the PATH."""
        look = ["sh", "-c", 'command -v -- "$1"', "sh", program]
        argv = self.machine.command(look, mark="", elevated=self.elevated, terminal=False)
        return (await _run(argv, self.machine.environment("")))[0] == 0


async def reap(machine: Machine, mark: str) -> None:
    """Kill every process whose mark begins with `mark`."""
    await Place(machine, mark, elevated=False).signal("KILL", at_most=0)


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
