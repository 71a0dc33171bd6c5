"""Commands that this machine has its own of while it plays an instance.

`reboot` and its kin must not reach this machine: pyinfra's server.reboot would take it down. `sudo`
is made where it is missing: whoever runs the emulator is its ssm-user, with NOPASSWD.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

_DOWN = ("shutdown", "poweroff", "halt")
_REBOOT = """#!{python} -I
from urllib.request import Request, urlopen
urlopen(Request("{url}", b"{{}}", {{"Content-Type": "application/json"}}))
"""
_REFUSE = """#!/bin/sh
echo "$0: this machine plays an instance of the SSM emulator: only reboot is emulated" >&2
exit 1
"""
# Takes the options that pyinfra and its connectors use; those that set only a prompt or a home
# make no difference here.
_SUDO = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        -u) user=$2; shift 2 ;;
        -p) shift 2 ;;
        --) shift; break ;;
        -*) shift ;;
        *=*) export "$1"; shift ;;
        *) break ;;
    esac
done
if [ -n "${user-}" ] && [ "$user" != root ]; then exec runuser -u "$user" -- "$@"; fi
exec "$@"
"""


class StandIns:
    """Two folders of commands: one that goes before everything on a PATH, one behind."""

    def __init__(self, reboot_url: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="ssm-emulator-"))
        reboot = _REBOOT.format(python=sys.executable, url=reboot_url)
        self._before = self._make("before", {"reboot": reboot} | dict.fromkeys(_DOWN, _REFUSE))
        self._behind = self._make("behind", {} if shutil.which("sudo") else {"sudo": _SUDO})

    def around(self, path: str) -> str:
        """Return a PATH with the stand-ins before and behind."""
        return os.pathsep.join([str(self._before), path, str(self._behind)])

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self, name: str, scripts: dict[str, str]) -> Path:
        folder = self._folder / name
        folder.mkdir()
        for command, script in scripts.items():
            (folder / command).write_text(script)
            (folder / command).chmod(0o755)
        return folder
