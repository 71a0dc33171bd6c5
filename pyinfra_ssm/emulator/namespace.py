"""The emulator in Linux namespaces of its own, for an instance that is this machine.

Its processes, mounts and host name are then the instance's alone: what a command mounts or renames
is gone with the emulator, `kill -9 -1` reaches nothing else, and all that runs, daemons too, ends
with it. Files and network stay this machine's.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

_NAMESPACES = ("--fork", "--kill-child", "--pid", "--mount", "--mount-proc", "--uts", "--ipc")
# Without these, namespaces are root's to make; inside, this user is then root.
_UNPRIVILEGED = ("--user", "--map-root-user")


def run_in_namespaces(argv: Sequence[str]) -> int:
    """Run the emulator with these arguments as the first process of new namespaces, to its end."""
    flags = _NAMESPACES if os.geteuid() == 0 else (*_NAMESPACES, *_UNPRIVILEGED)
    command = ["unshare", *flags, "--", sys.executable, "-m", "pyinfra_ssm.emulator", *argv]
    process = subprocess.Popen(command, process_group=0)

    def pass_on(number: int, _: FrameType | None) -> None:
        # unshare takes no notice of these two, and does not pass them on.
        os.killpg(process.pid, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    return process.wait()
