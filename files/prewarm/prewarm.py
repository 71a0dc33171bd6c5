#!/usr/bin/python3
"""Read installed packages and directories once, with many readers, before a server needs them.

A volume made from a snapshot fetches each block from S3 when it is first touched; AWS documents
that, and advises to read all of it with many reads in flight before it is used [source: Amazon EBS
User Guide, "Initialize Amazon EBS volumes"]. A server that starts touches the blocks nearly one
after the other: 9 to 21 MB/s [field]. That this is faster on a g5g is untested.

Once a machine is enough, so the record names the machine that read: an image of it, whose instances
have machine ids of their own, is read again on each. Standard library alone; run by the interpreter
whose packages are to be read. What cannot be read is named and left out.
"""

import argparse
import importlib.util
import json
import os
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

BLOCK = 1 << 20  # bytes of one read; with 32 readers, what AWS's own example has in flight [source]
RANGE = 64 * BLOCK  # of one file that one reader takes: a file of 10 GB is the work of all of them
PROGRESS_S = 5.0
NAMED = 20  # files that could not be read, by name in the record; all of them are counted


class Range(NamedTuple):
    """Bytes `start` to `end` of one file."""

    path: str
    start: int
    end: int


@dataclass
class Tally:
    """What many readers have read so far, and the paths that they could not read, with the why."""

    bytes: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, count: int) -> None:
        with self._lock:
            self.bytes += count

    def fault(self, path: str, why: str) -> None:
        with self._lock:
            self.faults[path] = why


def directories_of(package: str) -> list[str]:
    """Return where a package of this interpreter lies, without importing it; [] for none."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or []) if spec else []


def files_below(directory: str, tally: Tally) -> Iterator[Range]:
    """Yield each regular file below a directory, whole, in a fixed order. Links are not followed.

    They may lead anywhere, and what they lead to inside is read in its own place.
    """

    def failed(error: OSError) -> None:
        tally.fault(str(error.filename), error.strerror or str(error))

    for folder, folders, names in os.walk(directory, onerror=failed):
        folders.sort()
        for path in (os.path.join(folder, name) for name in sorted(names)):
            try:
                status = os.lstat(path)
            except OSError as error:
                failed(error)
                continue
            if stat.S_ISREG(status.st_mode):
                yield Range(path, 0, status.st_size)


def split(whole: Range) -> Iterator[Range]:
    """Yield in order the parts of at most RANGE bytes that make up a file; of an empty one none."""
    for start in range(whole.start, whole.end, RANGE):
        yield Range(whole.path, start, min(start + RANGE, whole.end))


def read(part: Range, buffer: memoryview, tally: Tally, deadline: float) -> None:
    """Read a range block by block into the buffer, until `deadline` on the monotonic clock."""
    descriptor = os.open(part.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        offset = part.start
        while offset < part.end and time.monotonic() < deadline:
            count = os.preadv(descriptor, [buffer[: part.end - offset]], offset)
            if not count:
                tally.fault(part.path, f"ends at byte {offset} of {part.end}")
                return
            offset += count
            tally.add(count)
    finally:
        os.close(descriptor)


class Parts:
    """The ranges that are left, each handed to one reader."""

    def __init__(self, parts: Iterable[Range]) -> None:
        self._parts = iter(parts)
        self._lock = threading.Lock()

    def next(self) -> Range | None:
        with self._lock:
            return next(self._parts, None)


def read_all(parts: Parts, tally: Tally, deadline: float) -> None:
    """Be one reader: take ranges until none is left, or until the deadline."""
    buffer = memoryview(bytearray(BLOCK))
    while time.monotonic() < deadline and (part := parts.next()):
        try:
            read(part, buffer, tally, deadline)
        except OSError as error:
            tally.fault(part.path, error.strerror or str(error))


def warm(files: list[Range], readers: int, deadline: float, tally: Tally) -> None:
    """Read all the files with so many readers, and say every few seconds how far they are."""
    parts = Parts(part for file in files for part in split(file))
    total, start = sum(file.end for file in files), time.monotonic()
    with ThreadPoolExecutor(readers) as pool:
        left = {pool.submit(read_all, parts, tally, deadline) for _ in range(readers)}
        while left:
            done, left = wait(left, timeout=PROGRESS_S)
            for reader in done:
                reader.result()
            if left:
                share = f"{tally.bytes / max(total, 1):.0%} of {total / 1e6:,.0f} MB"
                say(f"{share}, {speed(tally.bytes, time.monotonic() - start)}")


def speed(count: int, seconds: float) -> str:
    return f"{count / 1e6:,.0f} MB in {seconds:.1f} s, {count / 1e6 / max(seconds, 1e-3):,.0f} MB/s"


def machine_id(path: str) -> str:
    """Return the id that systemd gives a machine at its first boot; "" where there is none yet."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def read_by(record: str) -> str:
    """Return the id of the machine that has read, "" where none has or the record is broken."""
    try:
        with open(record) as file:
            return str(json.load(file)["machine"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def write_whole(path: str, value: object) -> None:
    """Write JSON beside its place, then rename: a reader sees the old file or the new one."""
    with open(path + ".new", "w") as file:
        json.dump(value, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def say(line: str) -> None:
    print(line, flush=True)


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--package", action="append", default=[], help="of this interpreter")
    parser.add_argument("--directory", action="append", default=[], help="read after the packages")
    parser.add_argument("--record", required=True, help="file that says which machine has read")
    parser.add_argument("--limit", type=float, required=True, help="seconds, then the rest is left")
    parser.add_argument("--readers", type=int, default=32)
    parser.add_argument("--machine-id", default="/etc/machine-id", help="file with it")
    return parser.parse_args(words)


def places(options: argparse.Namespace) -> list[str]:
    """Return the directories to read: packages first, so that the checkpoint is read last.

    Where memory cannot hold both, the kernel gives up first what was read first and not used since:
    the pages of the packages, and never those of a program that runs. What stays is a bonus; what
    counts is that the volume has its blocks.
    """
    found = {package: directories_of(package) for package in options.package}
    if missing := [package for package, where in found.items() if not where]:
        say(f"not installed: {', '.join(missing)}")
    return [*(place for where in found.values() for place in where), *options.directory]


def conclude(files: list[Range], tally: Tally, seconds: float) -> dict[str, object]:
    """Say what was read and what was not; return it for the record."""
    total = sum(file.end for file in files)
    left = "" if tally.bytes >= total else f" of {total / 1e6:,.0f} MB"
    named = dict(sorted(tally.faults.items())[:NAMED])
    unread = "".join(f"; not read: {path} ({why})" for path, why in named.items())
    more = f"; and {len(tally.faults) - NAMED} more" if len(tally.faults) > NAMED else ""
    say(f"{len(files)} files{left}: {speed(tally.bytes, seconds)}{unread}{more}")
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "bytes": tally.bytes,
        "bytes_found": total,
        "files": len(files),
        "seconds": round(seconds, 1),
        "unread": named,
        "unread_count": len(tally.faults),
    }


def main(words: list[str] | None = None) -> int:
    """Read, and write the record; return 0, also where there is nothing left to do."""
    options = arguments(words)
    machine, start = machine_id(options.machine_id), time.monotonic()
    if machine and read_by(options.record) == machine:
        say(f"nothing to do: {options.record} says that this machine has read")
        return 0
    tally, directories = Tally(), places(options)
    files = [file for directory in directories for file in files_below(directory, tally)]
    warm(files, options.readers, start + options.limit, tally)
    told = conclude(files, tally, time.monotonic() - start)
    write_whole(options.record, {"machine": machine, "directories": directories, **told})
    return 0


if __name__ == "__main__":
    sys.exit(main())
