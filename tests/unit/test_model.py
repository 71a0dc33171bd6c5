"""When a checkpoint is made again, that its manifest tells the truth, and whose it is meanwhile."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from operations.model import Producer, downloaded, plan

ROOT = Path(__file__).resolve().parents[2]
PRODUCER = Producer("org/model@main", Path(__file__))
PLANS = {
    "whole": ({"identity": "org/model@main", "faults": [], "fault_count": 0}, []),
    "missing": (None, ["/m is missing"]),
    "another": (
        {"identity": "org/other@main", "faults": [], "fault_count": 0},
        ["/m holds org/other@main, wanted org/model@main"],
    ),
    "damaged": (
        {"identity": "org/model@main", "faults": ["a is missing"], "fault_count": 1},
        ["/m has 1 damaged files: a is missing"],
    ),
}


@pytest.mark.parametrize(("found", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(found, reasons):
    assert [s.reason for s in plan(found, PRODUCER, "/m", "/py", "vllm", "/log")] == reasons


def test_the_job_may_write_beside_the_checkpoint_and_nowhere_else():
    (step,) = plan(None, PRODUCER, "/var/models/m", "/py", "vllm", "/log")
    job = json.loads(step.command.connector_arguments["_stdin"])
    assert job["input"]["user"] == "vllm"
    assert job["properties"]["ProtectSystem"] == "strict"
    assert job["properties"]["ReadWritePaths"] == "/var/models"


def test_a_token_goes_to_the_download_by_file_alone():
    producer = downloaded("org/model", "main", "/run/vllm-g5g/token.env", {})
    assert producer.properties == (
        ("EnvironmentFile", "/run/vllm-g5g/token.env"),
        ("LimitCORE", "0"),
    )


USER = "nobody"  # on every Debian, and no more than the service's account is
PYTHON = shutil.which("python3", path="/usr/bin:/bin")  # one that this user may run
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
WRITE_TWO = "import sys; open(sys.argv[1] + '/a', 'w').write('1'); open(sys.argv[1] + '/b', 'w')"
WHOLE = {"identity": "two files", "faults": [], "fault_count": 0}


@pytest.fixture
def directory():
    """Where a checkpoint is to lie: unlike pytest's own folders, others may look in there."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder) / "model"


def place(directory, producer=WRITE_TWO, user=USER, **environment):
    given = directory.parent / "input.json"
    spec = {
        "directory": str(directory),
        "identity": "two files",
        "python": PYTHON,
        "user": user,
        "producer": producer,
        "arguments": [],
    }
    given.write_text(json.dumps(spec))
    program = ROOT / "files" / "model" / "place.py"
    return subprocess.run(
        (PYTHON, program, given),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def state(directory):
    program = ROOT / "files" / "facts" / "model.py"
    done = subprocess.run((PYTHON, program, directory), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def partial(directory):
    return Path(f"{directory}.partial")


DAMAGES = {
    "deleted": (lambda a: a.unlink(), "a is missing"),
    "cut short": (lambda a: a.write_text(""), "a has 0 bytes, wanted 1"),
    "same size, other content": (lambda a: a.write_text("2"), "a differs in content"),
}


@AS_ROOT
@pytest.mark.parametrize(("damage", "fault"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_seen_and_mended(damage, fault, directory):
    assert place(directory).returncode == 0
    assert state(directory) == WHOLE
    damage(directory / "a")
    assert state(directory)["faults"] == [fault]
    assert place(directory).returncode == 0
    assert state(directory)["fault_count"] == 0


TELL = """
import json, os, sys
told = {
    "ids": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
    "environment": dict(os.environ),
    "input": sys.stdin.read(),
    "path": sys.path,
}
for name in ("HOME", "HF_HOME", "XDG_CACHE_HOME"):
    os.makedirs(os.environ[name], exist_ok=True)
    open(os.environ[name] + "/cached", "w")
with open(sys.argv[1] + "/told", "w") as file:
    json.dump(told, file)
"""


@AS_ROOT
def test_the_producer_is_the_user_with_a_home_and_the_token_in_no_environment(directory):
    assert place(directory, TELL, HF_TOKEN="hf_planted").returncode == 0
    told = json.loads((directory / "told").read_text())
    account = pwd.getpwnam(USER)
    assert told["ids"] == [account.pw_uid] * 3 + [account.pw_gid] * 3
    assert told["input"] == "hf_planted"
    assert "hf_planted" not in told["environment"].values()
    assert "" not in told["path"]
    assert sorted(os.listdir(directory.parent)) == ["input.json", "model", "model.manifest.json"]


WRITE_OPEN = """
import os, sys
os.mkdir(sys.argv[1] + "/.cache", 0o777)
for name in ("/a", "/.cache/b"):
    open(sys.argv[1] + name, "w").write("1")
    os.chmod(sys.argv[1] + name, 0o6777)
os.chmod(sys.argv[1], 0o777)
"""


@AS_ROOT
def test_what_is_served_is_roots_and_readable_by_all(directory):
    assert place(directory, WRITE_OPEN).returncode == 0
    found = {path: path.stat() for path in (directory, *directory.rglob("*"))}
    assert len(found) == 4
    assert {(status.st_uid, status.st_gid) for status in found.values()} == {(0, 0)}
    modes = {path: stat.S_IMODE(status.st_mode) for path, status in found.items()}
    assert modes == {path: 0o755 if path.is_dir() else 0o644 for path in found}


STAY = r"""
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(15, b"odd \xff\n", 0, 0, 0)  # PR_SET_NAME
note = open(sys.argv[1] + "/stays", "w")
ready, said = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), file=note, flush=True)
        os.closerange(1, 3)
        os.write(said, b"1")
        signal.pause()
    os._exit(0)
os.read(ready, 1)
"""


@AS_ROOT
@pytest.mark.parametrize(("end", "status"), [("", 0), ("sys.exit(1)", 1)], ids=["well", "badly"])
def test_nothing_of_the_producer_is_left_running(end, status, directory):
    assert place(directory, STAY + end).returncode == status
    note = (partial(directory) if status else directory) / "stays"
    assert not Path(f"/proc/{note.read_text().strip()}").exists()


PLANTS = {
    "a link to a file": "os.symlink(victim, there)",
    "a link to a folder": "os.symlink(os.path.dirname(victim), there)",
    "a second name": "open(there, 'w'); os.link(there, there + '2')",
    "a pipe": "os.mkfifo(there)",
}


@AS_ROOT
@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_a_producer_cannot_point_root_at_other_files(plant, directory):
    victim = directory.parent / "private"
    victim.write_text("mine")
    victim.chmod(0o600)
    place(directory)
    producer = f"import os, sys; victim, there = {str(victim)!r}, sys.argv[1] + '/there'; {plant}"
    done = place(directory, producer)
    assert done.returncode != 0
    assert "neither a folder nor a file with one name" in done.stderr
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("mine", 0o600)
    assert not partial(directory).exists()
    assert state(directory) == WHOLE
    assert place(directory).returncode == 0


@AS_ROOT
def test_a_failed_download_leaves_the_old_checkpoint_and_its_own_rest(directory):
    place(directory)
    done = place(directory, WRITE_TWO + "; sys.exit(1)")
    assert done.returncode != 0
    assert "could not make two files" in done.stderr
    assert state(directory)["fault_count"] == 0
    assert sorted(os.listdir(partial(directory))) == ["a", "b"]


GO_ON = "import sys; open(sys.argv[1] + '/a', 'r+'); open(sys.argv[1] + '/c', 'w')"


@AS_ROOT
@pytest.mark.parametrize("owner", [USER, "root"])
def test_the_rest_of_the_same_download_is_gone_on_with_whoever_had_it_last(owner, directory):
    place(directory, WRITE_TWO + "; sys.exit(1)")
    for path in (partial(directory), *partial(directory).iterdir()):
        shutil.chown(path, owner)
    assert place(directory, GO_ON).returncode == 0
    assert sorted(os.listdir(directory)) == ["a", "b", "c"]


@AS_ROOT
def test_a_rest_that_nothing_is_known_of_is_thrown_away(directory):
    partial(directory).mkdir()
    (partial(directory) / ".identity").write_text("two files")
    (partial(directory) / "old").touch()
    assert place(directory).returncode == 0
    assert sorted(os.listdir(directory)) == ["a", "b"]


@AS_ROOT
def test_without_the_account_nothing_is_made(directory):
    done = place(directory, user="no-such-user")
    assert done.returncode != 0
    assert "there is no account no-such-user on this host" in done.stderr
    assert os.listdir(directory.parent) == ["input.json"]
