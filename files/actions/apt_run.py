"""Run one apt or dpkg command on a host that unattended-upgrades and snapd manage as well.

Waits until nobody else holds apt's locks, asks no question, restarts no service, and keeps snapd
from replacing the SSM agent, and so ending this very session, while the command runs. With
--refuse, a simulation comes first: if it would bring, move or remove a package whose name matches,
nothing is run. Exit status: the command's own; 75 a lock was not let go in time; 76 refused.
"""

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

LOCKS = [
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
]
# sudo drops what the caller exports, so it is set here.
QUIET = {
    "DEBIAN_FRONTEND": "noninteractive",
    "NEEDRESTART_SUSPEND": "1",
    "NEEDRESTART_MODE": "l",  # only list, where a needrestart does not know the line above
    "LC_ALL": "C.UTF-8",
}
AGENT = "amazon-ssm-agent"  # a snap on Ubuntu's images
# A hold that outlives a killed run ends by itself.
HOLD = "3h"
FLOCK = "hhqqi"  # struct flock on 64-bit Linux: type, whence, start, length, pid


def holder(descriptor):
    """Return the pid that holds a lock on the whole file, or None."""
    query = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = struct.unpack(FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
    return None if kind == fcntl.F_UNLCK else pid


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return "?"


def wait_for(path, deadline):
    """Return once nobody holds the lock; say who does meanwhile."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o640)
    said = None
    try:
        while (pid := holder(descriptor)) is not None:
            if time.monotonic() > deadline:
                say(f"{path} is still held by {name_of(pid)} (pid {pid}). Let it finish or stop it")
                sys.exit(75)
            if pid != said:
                say(f"waiting for {path}, held by {name_of(pid)} (pid {pid})")
                said = pid
            time.sleep(1)
    finally:
        os.close(descriptor)


def say(text):
    print(f"apt_run: {text}", file=sys.stderr, flush=True)


def would_touch(command, pattern):
    """Return the packages that the command would install, move or remove and that match."""
    dry = [command[0], "--simulate", *command[1:]]
    simulation = subprocess.run(dry, capture_output=True, text=True)
    if simulation.returncode:
        say(f"the simulation failed:\n{simulation.stderr}{simulation.stdout}")
        sys.exit(simulation.returncode)
    names = re.findall(r"^(?:Inst|Remv) (\S+)", simulation.stdout, re.MULTILINE)
    return sorted({name for name in names if re.fullmatch(pattern, name)})


def hold_is_ours_to_take():
    if not shutil.which("snap"):
        return False
    listed = subprocess.run(["snap", "list", AGENT], capture_output=True, text=True)
    if listed.returncode:
        return False
    notes = listed.stdout.splitlines()[-1].split()[-1].split(",")
    return "held" not in notes


@contextlib.contextmanager
def agent_kept():
    """Hold refreshes of the agent's snap; a hold of somebody else is neither taken nor released."""
    ours = hold_is_ours_to_take()
    if ours:
        ours = not subprocess.run(["snap", "refresh", f"--hold={HOLD}", AGENT]).returncode
    try:
        yield
    finally:
        if ours:
            subprocess.run(["snap", "refresh", "--unhold", AGENT])


def run(command, attempts):
    for attempt in range(1, attempts + 1):
        code = subprocess.run(command, stdin=subprocess.DEVNULL).returncode
        if code == 0 or attempt == attempts:
            return code
        say(f"attempt {attempt} of {attempts} exited {code}; trying again")
        time.sleep(5 * attempt)  # a mirror in the middle of its synchronisation
    return code


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", type=float, default=600, help="seconds to wait for the locks")
    parser.add_argument("--attempts", type=int, default=1)
    parser.add_argument("--refuse", help="regular expression over package names")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def main(options):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that our hold is released
    os.environ.update(QUIET)
    deadline = time.monotonic() + options.wait
    for lock in LOCKS:
        wait_for(lock, deadline)
    if options.refuse and (touched := would_touch(options.command, options.refuse)):
        say(f"refused: `{' '.join(options.command)}` would touch {', '.join(touched)}")
        return 76
    with agent_kept():
        return run(options.command, options.attempts)


if __name__ == "__main__":
    sys.exit(main(parsed()))
