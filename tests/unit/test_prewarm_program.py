"""The first reading of a volume: the program on real files."""

import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.script import FILES
from files.prewarm import prewarm
from files.prewarm.prewarm import BLOCK, RANGE, Range, Tally, directories_of, files_below, split


@dataclass
class Reads:
    """What was read, through os.preadv itself."""

    spans: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    before: Callable[[], object] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def covered(self, path: Path) -> list[tuple[int, int]]:
        """Return the spans of one file in order, those that touch made one."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(self.spans[str(path)]):
            if merged and merged[-1][1] == start:
                start = merged.pop()[0]
            merged.append((start, end))
        return merged


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    made, preadv = Reads(), os.preadv

    def recorded(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        made.before()
        count = preadv(descriptor, buffers, offset)
        with made.lock:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            made.spans[path].append((offset, offset + count))
        return count

    monkeypatch.setattr(os, "preadv", recorded)
    return made


@dataclass
class Machine:
    """A machine id, a tree, and the program's record."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def file(self, name: str, content: bytes) -> Path:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def words(self, limit: float = 600) -> list[str]:
        identity = ["--machine-id", f"{self.folder}/machine-id"]
        return ["--directory", str(self.tree), "--limit", str(limit), *self.recording, *identity]

    @property
    def recording(self) -> list[str]:
        return ["--record", f"{self.folder}/prewarm.json"]

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "prewarm.json").read_text())
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "machine-id").write_text("a-machine\n")
    (tmp_path / "tree").mkdir()
    return Machine(tmp_path)


def test_every_byte_is_read_exactly_once(machine: Machine, reads: Reads) -> None:
    large = machine.file("large", b"")
    os.truncate(large, 3 * RANGE + BLOCK + 1)
    small = machine.file("below/small", b"x" * 1000)
    machine.file("empty", b"")

    assert prewarm.main(machine.words()) == 0

    size = large.stat().st_size
    assert reads.covered(large) == [(0, size)]
    assert sum(end - start for start, end in reads.spans[str(large)]) == size
    assert max(end - start for start, end in reads.spans[str(large)]) == BLOCK
    assert reads.spans[str(small)] == [(0, 1000)]
    assert reads.spans.keys() == {str(large), str(small)}
    told = machine.record()
    assert (told["bytes"], told["bytes_found"], told["files"]) == (size + 1000, size + 1000, 3)
    assert (told["machine"], told["unread_count"]) == ("a-machine", 0)


def test_a_large_file_keeps_several_readers_at_work(machine: Machine, reads: Reads) -> None:
    os.truncate(machine.file("large", b""), 4 * RANGE)
    met = threading.Barrier(4, timeout=60)
    reads.before = lambda: met.wait() if reads.spans == {} else None

    assert prewarm.main([*machine.words(), "--readers", "4"]) == 0
    assert not met.broken


def test_the_same_machine_reads_once_and_another_again(machine: Machine, reads: Reads) -> None:
    path = machine.file("file", b"x")
    assert prewarm.main(machine.words()) == 0
    assert prewarm.main(machine.words()) == 0
    assert reads.spans[str(path)] == [(0, 1)]
    (machine.folder / "machine-id").write_text("another\n")
    assert prewarm.main(machine.words()) == 0
    assert reads.spans[str(path)] == [(0, 1), (0, 1)]
    assert machine.record()["machine"] == "another"


RECORDS = {"broken": "{", "of another form": "[]", "empty": "", "without a machine": "{}"}


@pytest.mark.parametrize("text", RECORDS.values(), ids=RECORDS)
def test_a_record_that_cannot_be_read_counts_as_none(machine: Machine, text: str) -> None:
    (machine.folder / "prewarm.json").write_text(text)
    machine.file("file", b"x")
    assert prewarm.main(machine.words()) == 0
    assert machine.record()["bytes"] == 1
    assert sorted(path.name for path in machine.folder.iterdir()) == [
        *("machine-id", "prewarm.json", "tree")
    ]


def test_a_machine_without_an_id_reads_every_time(machine: Machine, reads: Reads) -> None:
    path = machine.file("file", b"x")
    (machine.folder / "machine-id").write_text("")
    assert [prewarm.main(machine.words()) for _ in range(2)] == [0, 0]
    assert len(reads.spans[str(path)]) == 2


def test_links_are_not_followed(machine: Machine, reads: Reads) -> None:
    outside = machine.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    inside = machine.file("inside", b"x")
    (machine.tree / "to-folder").symlink_to(outside)
    (machine.tree / "to-file").symlink_to(outside / "file")
    (machine.tree / "to-nothing").symlink_to("nowhere")
    os.mkfifo(machine.tree / "pipe")

    assert prewarm.main(machine.words()) == 0
    assert reads.spans.keys() == {str(inside)}
    assert machine.record()["unread_count"] == 0


def test_an_empty_directory_is_read_at_once(machine: Machine) -> None:
    assert prewarm.main(machine.words()) == 0
    assert (machine.record()["files"], machine.record()["bytes"]) == (0, 0)


def test_a_missing_directory_is_named_and_the_rest_is_read(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.file("file", b"x")
    assert prewarm.main([*machine.words(), "--directory", "/nonexistent"]) == 0
    assert machine.record()["bytes"] == 1
    assert machine.record()["unread"] == {"/nonexistent": "No such file or directory"}
    assert "not read: /nonexistent (No such file or directory)" in capsys.readouterr().out


def vanish(path: Path) -> None:
    path.unlink()


def cut_short(path: Path) -> None:
    os.truncate(path, 1)


def become_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SURPRISES = {
    "gone": (vanish, "No such file or directory"),
    "cut short": (cut_short, "ends at byte 1 of 1000"),
    "a link": (become_a_link, "Too many levels of symbolic links"),
    "a folder": (become_a_folder, "Is a directory"),
}


@pytest.mark.parametrize(("happen", "why"), SURPRISES.values(), ids=SURPRISES)
def test_a_file_that_changes_while_others_are_read_is_named(
    machine: Machine, reads: Reads, happen: Callable[[Path], None], why: str
) -> None:
    path, other = machine.file("a", bytes(1000)), machine.file("b", bytes(1000))
    tally = Tally()
    files = list(files_below(str(machine.tree), tally))
    happen(path)
    prewarm.warm(files, 2, float("inf"), tally)
    assert tally.faults == {str(path): why}
    assert reads.covered(other) == [(0, 1000)]


def test_many_faults_are_counted_and_some_are_named(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = Tally(faults={f"/f{number:02}": "gone" for number in range(30)})
    told = prewarm.conclude([], tally, 1.0)
    assert (told["unread_count"], len(told["unread"])) == (30, 20)  # type: ignore[arg-type]
    assert "/f19 (gone); and 10 more" in capsys.readouterr().out


def test_past_its_limit_it_leaves_the_rest_to_the_server(machine: Machine, reads: Reads) -> None:
    machine.file("file", b"x")
    assert prewarm.main(machine.words(limit=0)) == 0
    assert reads.spans == {}
    told = machine.record()
    assert (told["bytes"], told["bytes_found"], told["machine"]) == (0, 1, "a-machine")


def test_how_far_it_is_is_said_while_it_reads(
    machine: Machine, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.file("file", bytes(2_000_000))
    said, heard = list[str](), threading.Event()

    def say(line: str) -> None:
        said.append(line)
        heard.set()

    monkeypatch.setattr(prewarm, "PROGRESS_S", 0.01)
    monkeypatch.setattr(prewarm, "say", say)
    reads.before = lambda: heard.wait(60)
    assert prewarm.main([*machine.words(), "--readers", "1"]) == 0
    assert said[0].startswith("0% of 2 MB, 0 MB in ")
    assert said[-1].startswith("1 files: 2 MB in ")


def test_packages_are_found_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("whole", "spread"):
        (tmp_path / name).mkdir()
    (tmp_path / "whole" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "single.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert directories_of("whole") == [str(tmp_path / "whole")]
    assert directories_of("spread") == [str(tmp_path / "spread")]  # a namespace, as nvidia is
    assert directories_of("single") == directories_of("nonexistent") == []


def test_it_runs_alone_and_reads_the_packages_before_the_checkpoint(machine: Machine) -> None:
    machine.file("model.safetensors", bytes(5000))
    command = [sys.executable, "-I", str(FILES / "prewarm" / "prewarm.py"), *machine.words()]
    packages = ["--package", "jinja2", "--package", "nonexistent"]
    done = subprocess.run([*command, *packages], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "not installed: nonexistent"
    first, last = machine.record()["directories"]
    assert (Path(first).name, last) == ("jinja2", str(machine.tree))
    assert machine.record()["bytes"] > 5000
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.stdout.startswith("nothing to do: ")


@given(st.integers(0, 10 * RANGE))
def test_the_parts_of_a_file_are_all_of_it_in_order(size: int) -> None:
    parts = list(split(Range("/a", 0, size)))
    edges = [0, *(part.end for part in parts)]
    assert [part.start for part in parts] == edges[:-1]
    assert edges[-1] == size
    assert all(0 < part.end - part.start <= RANGE for part in parts)
