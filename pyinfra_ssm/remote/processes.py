"""Which processes a command has started, and ending them all."""

from __future__ import annotations

import contextlib
import os


def family(pid: int) -> set[tuple[int, int]]:
    """Return (process id, start time) of `pid` and of all that descends from it.

    A process group alone misses what sudo or setsid moved into a session of its own.
    """
    parents: dict[int, list[int]] = {}
    started: dict[int, int] = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent, start = _parent_and_start(int(each))
            parents.setdefault(parent, []).append(int(each))
            started[int(each)] = start
    members, waiting = set(), [pid]
    while waiting:
        member = waiting.pop()
        if member in started:
            members.add((member, started[member]))
        waiting += parents.get(member, [])
    return members


def end(group: int, members: set[tuple[int, int]], number: int) -> None:
    """Send a signal to the process group, and to each member that is still the same process."""
    with contextlib.suppress(OSError):
        os.killpg(group, number)
    for pid, start in members:
        with contextlib.suppress(OSError, ValueError, IndexError):
            if _parent_and_start(pid)[1] == start:
                os.kill(pid, number)


def _parent_and_start(pid: int) -> tuple[int, int]:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()  # the name before it may hold anything
    return int(fields[1]), int(fields[19])
