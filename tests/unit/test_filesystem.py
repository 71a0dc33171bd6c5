"""The planner of managed paths, and the operation against this machine's own file system."""

import os
import subprocess

import pytest

from facts.paths import Paths
from operations import filesystem
from operations.filesystem import Absent, Directory, File, plan
from operations.steps import Refusal
from tests.unit.converge import converge, plan_of

HELLO = File("/etc/hello", "hello\n")
HELLO_SHA256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
SETTLED = {"mode": "644", "user": "root", "group": "root"}

PLANS = {
    "file missing": ({"kind": "absent"}, HELLO, ["/etc/hello is missing"]),
    "file current": ({"kind": "file", "sha256": HELLO_SHA256, **SETTLED}, HELLO, []),
    "content differs": (
        {"kind": "file", "sha256": "0", **SETTLED},
        HELLO,
        ["/etc/hello differs in content"],
    ),
    "mode and owner differ": (
        {"kind": "file", "sha256": HELLO_SHA256, "mode": "600", "user": "bin", "group": "bin"},
        HELLO,
        [
            "/etc/hello belongs to bin:bin, wanted root:root",
            "/etc/hello has mode 600, wanted 644",
        ],
    ),
    "a link stands there": (
        {"kind": "link", **SETTLED},
        HELLO,
        ["/etc/hello is a link, wanted a file"],
    ),
    "directory missing": ({"kind": "absent"}, Directory("/d"), ["/d is missing"]),
    "directory current": (
        {"kind": "directory", "mode": "755", "user": "root", "group": "root"},
        Directory("/d"),
        [],
    ),
    "already absent": ({"kind": "absent"}, Absent("/x"), []),
    "present, wanted absent": (
        {"kind": "file", "sha256": "0", **SETTLED},
        Absent("/x"),
        ["/x must not exist, found a file"],
    ),
}


@pytest.mark.parametrize(("found", "entry", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(found, entry, reasons):
    assert [step.reason for step in plan({entry.path: found}, [entry])] == reasons


def test_a_directory_in_a_files_place_is_refused():
    (step,) = plan({"/etc/hello": {"kind": "directory", **SETTLED}}, [HELLO])
    assert isinstance(step, Refusal)
    assert "/etc/hello: found a directory, wanted a file" in step.message


def test_content_without_a_final_newline_is_an_error():
    with pytest.raises(ValueError, match="must end in a newline"):
        File("/etc/hello", "hello")


@pytest.mark.skipif(os.geteuid() != 0, reason="sets owners, so it needs root")
def test_a_file_is_written_kept_and_mended(tmp_path):
    path = tmp_path / "it's a $file"
    entry = File(str(path), "one $HOME\n'two'\n", mode="640")

    assert converge(filesystem.present, entries=[entry])
    assert not converge(filesystem.present, entries=[entry])
    subprocess.run(["sed", "-i", "s/one/drift/", path], check=True)
    subprocess.run(["chmod", "777", path], check=True)
    assert plan_of(filesystem.present, entries=[entry])
    assert path.read_text().startswith("drift")
    assert converge(filesystem.present, entries=[entry])

    assert path.read_text() == entry.content
    assert oct(path.stat().st_mode)[-3:] == "640"
    assert not converge(filesystem.present, entries=[entry])
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_removed_is_neither_fetched_nor_shown(tmp_path):
    key, page = tmp_path / "key", tmp_path / "page"
    key.write_text("SECRET=1\n")
    page.write_text("text\n")
    asked = Paths().command([str(key), str(page)], shown=[str(page)]).get_raw_value()
    answer = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, check=True).stdout
    found = Paths().process(answer.splitlines())
    assert found[str(page)]["content"] == "text\n"
    assert "SECRET" not in answer
    assert plan(found, [Absent(str(key))])[0].diff == ()
