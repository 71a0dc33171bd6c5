"""The command lines that start our program on a host, and the program as it is sent there; pure.

Only the command lines pass through the API, and so into the account's history: the program and all
that it is asked to do travel in the session itself.
"""

import base64
import json
import shlex
import zlib
from functools import cache
from importlib import resources

from pyinfra_ssm.remote.framing import START

_PACKAGE = "pyinfra_ssm.remote"
_SERVING = ("framing", "processes", "files", "commands", "surroundings", "leader", "main")
_FETCHING = ("framing", "files", "surroundings", "bulk")

# Makes the rest of a shell's command root's. `sudo -n` fails at once where it would ask; where the
# session is root's already, there may be no sudo at all. No variable: where a document's command is
# more than its parameter, an agent may take $name for a group of a regular expression and drop it.
_AS_ROOT = 'exec $([ "$(id -u)" = 0 ] || echo sudo -n)'

_LOADER = """
import sys, types
def load(name, source):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
"""


def _sources(modules: tuple[str, ...], call: str) -> bytes:
    """Return one Python text that defines the modules under their own names, then does `call`."""
    folder = resources.files(_PACKAGE)
    parts = [_LOADER, 'load("pyinfra_ssm", "")', f'load("{_PACKAGE}", "")']
    for module in modules:
        source = folder.joinpath(f"{module}.py").read_text(encoding="utf-8")
        parts.append(f'load("{_PACKAGE}.{module}", {source!r})')
    return zlib.compress("\n".join([*parts, call]).encode(), 9)


@cache
def serving_program() -> bytes:
    """Return what to send once the ready marker is there."""
    return _sources(_SERVING, f"from {_PACKAGE}.main import main\nmain()")


def ready_marker(nonce: str) -> bytes:
    """Return what the host prints when its terminal is raw and it reads the program."""
    return START + b"ready " + nonce.encode()


def serving_command(nonce: str, python: str = "python3") -> str:
    """Return the command for an interactive session: raw terminal, marker, then the program.

    Raw mode comes first, because a line of over 4,096 characters hangs in canonical mode; the
    marker is spelled backwards, so that its echo is never taken for it.
    """
    script = (
        "import os,tty,zlib;os.isatty(0) and tty.setraw(0);"
        f'os.write(1,b"\\x1eready "+b"{nonce[::-1]}"[::-1]);'
        f'exec(zlib.decompress(open(0,"rb",closefd=False).read({len(serving_program())})))'
    )
    return f"stty raw -echo; {_AS_ROOT} {python} -c '{script}'"


def fetching_command(path: str, user: str | None, python: str = "python3") -> str:
    """Return the command for a session that prints one file, which gives it no shell.

    Its user may be another than that of the serving session, whose document is another.
    """
    program = _sources(_FETCHING, f"from {_PACKAGE}.bulk import main\nmain(sys.argv[1])")
    request = json.dumps({"path": path, "user": user}).encode()
    script = "import sys,zlib,base64;exec(zlib.decompress(base64.b64decode(sys.argv.pop(1))))"
    arguments = " ".join(base64.b64encode(each).decode() for each in (program, request))
    return shlex.join(["sh", "-c", f"{_AS_ROOT} {python} -c '{script}' {arguments}"])
