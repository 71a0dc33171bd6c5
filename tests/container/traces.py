"""Where a secret shows on a host, and in what forms it is looked for.

The secret goes in by standard input: an argument would be a trace of its own.
"""

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.container.host import Host

# Nobody can set the time of a file's last change of any kind (ctime) back, so every file that a
# secret was written to since it exists is among those looked at.
_PROGRAM = r"""
import json, os, stat, subprocess, sys
forms, since, commands = json.load(sys.stdin)
forms = [form.encode() for form in forms]
def shows(content):
    return any(form in content for form in forms)
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # ended or removed meanwhile
files = {}
for folder, folders, names in os.walk("/"):
    if folder == "/":
        folders[:] = set(folders) - {"proc", "sys", "dev"}
        folders.append("dev/shm")
    for path in (os.path.join(folder, name) for name in names):
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode) and found.st_ctime >= since and shows(read(path)):
            files[path] = [f"{stat.S_IMODE(found.st_mode):o}", found.st_uid]
processes = [f"/proc/{entry}" for entry in os.listdir("/proc") if entry.isdigit()]
limits = {
    path: [line.split()[-3] for line in read(path + "/limits").decode().splitlines()
           if line.startswith("Max core file size")]
    for path in processes if shows(read(path + "/environ"))
}
json.dump({
    "files": files,
    "arguments": [path for path in processes if shows(read(path + "/cmdline"))],
    "core_limits": {path.rpartition("/")[2]: found[0] for path, found in limits.items() if found},
    "commands": [
        command for command in commands
        if shows(subprocess.run(command, shell=True, capture_output=True, check=True).stdout)
    ],
}, sys.stdout)
"""

# Prints every argument list that it ever sees, once its input ends.
_WATCH = r"""
import glob, json, select, sys
seen = set()
while True:
    over = select.select([sys.stdin], [], [], 0.02)[0]
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                seen.add(file.read().decode(errors="replace"))
        except OSError:
            continue
    if over:
        break
json.dump(sorted(seen), sys.stdout)
"""


@dataclass(frozen=True)
class Traces:
    """Where a secret was found.

    + files: [mode, user id] by path
    + arguments: directories in /proc of processes that have it as an argument
    + core_limits: soft limit on the size of a core dump, by id of a process that has the secret in
      its environment
    + commands: those of the given shell commands that printed it
    """

    files: dict[str, list[object]]
    arguments: list[str]
    core_limits: dict[str, str]
    commands: list[str]


def forms(secret: str) -> list[str]:
    """Return the secret as it is, in hex, and in base64 whatever stands before and behind it."""
    plain = secret.encode()
    return [secret, plain.hex(), *(_inside_base64(plain, before) for before in range(3))]


def _inside_base64(plain: bytes, before: int) -> str:
    """Return the characters that are the secret's alone, with `before` bytes in its first group."""
    encoded = base64.b64encode(b"\0" * before + plain).decode()
    whole = (before + len(plain)) // 3 * 4
    rest = ((before + len(plain)) % 3 * 8) // 6
    return encoded[(before * 8 + 5) // 6 : whole + rest]


def take(host: Host, secrets: Sequence[str], since: float, commands: Sequence[str]) -> Traces:
    """Look for the secrets in every file changed since, every process and what commands print."""
    wanted = [form for secret in secrets for form in forms(secret)]
    done = subprocess.run(
        host.engine.argv("exec", "--interactive", host.name, "python3", "-I", "-c", _PROGRAM),
        input=json.dumps([wanted, since, list(commands)]),
        capture_output=True,
        text=True,
        check=True,
    )
    return Traces(**json.loads(done.stdout))


@contextmanager
def watched_arguments(host: Host) -> Iterator[list[str]]:
    """Yield a list that has, after the block, the arguments of all processes seen inside it."""
    seen: list[str] = []
    with subprocess.Popen(
        host.engine.argv("exec", "--interactive", host.name, "python3", "-I", "-c", _WATCH),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield seen
        finally:
            seen += json.loads(process.communicate()[0])
