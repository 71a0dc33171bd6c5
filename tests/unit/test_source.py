"""The source tree, by a small real repository and the real git."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyinfra.api.exceptions import PyinfraError

from operations import source
from operations.source import Patch, Source
from tests.unit.converge import converge, plan_of

TORCH_SCRIPT = "use_existing_torch.py"
PATCH = Patch(
    "greet.patch",
    "--- a/greeting\n+++ b/greeting\n@@ -1 +1 @@\n-hello\n+hello, world\n",
    "1.0",
    compiled=False,
)


def git(*arguments, cwd):
    identity = ("-c", "user.name=upstream", "-c", "user.email=upstream@localhost")
    done = subprocess.run(
        ("git", *identity, *arguments), cwd=cwd, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def upstream(tmp_path):
    """A repository with tag v1.0, whose torch script rewrites a tracked file."""
    path = tmp_path / "upstream"
    path.mkdir()
    (path / "greeting").write_text("hello\n")
    (path / "requirements").write_text("numpy\ntorch==2.13.0\n")
    (path / ".gitignore").write_text("*.o\n")
    (path / TORCH_SCRIPT).write_text("open('requirements', 'w').write('numpy\\n')\n")
    git("init", "-q", ".", cwd=path)
    git("add", "-A", cwd=path)
    git("commit", "-qm", "one", cwd=path)
    git("tag", "v1.0", cwd=path)
    return path


@pytest.fixture
def wanted(upstream, tmp_path):
    """The arguments of the operation: a source with one patch, and where its tree goes."""
    return {
        "source": Source(f"file://{upstream}", "v1.0", TORCH_SCRIPT, (PATCH,)),
        "tree": str(tmp_path / "tree"),
        "python": sys.executable,
    }


@pytest.fixture
def tree(wanted):
    assert converge(source.prepared, **wanted)
    return Path(wanted["tree"])


def test_the_tree_has_the_patch_and_keeps_the_hosts_torch(tree, wanted):
    assert (tree / "greeting").read_text() == "hello, world\n"
    assert (tree / "requirements").read_text() == "numpy\n"
    assert git("status", "--porcelain", cwd=tree) == ""
    assert not converge(source.prepared, **wanted)


def test_equal_inputs_give_an_equal_commit(tree, wanted, tmp_path):
    other = tmp_path / "other"
    assert converge(source.prepared, **{**wanted, "tree": str(other)})
    assert git("rev-parse", "HEAD", cwd=other) == git("rev-parse", "HEAD", cwd=tree)


DRIFTS = {
    "local edit": lambda tree: (tree / "greeting").write_text("bye\n"),
    "stray file": lambda tree: (tree / "junk.py").write_text("junk\n"),
    "deleted file": lambda tree: (tree / "greeting").unlink(),
    "other commit": lambda tree: git("checkout", "-q", "v1.0", cwd=tree),
    "reverted patch": lambda tree: git("revert", "--no-edit", "HEAD", cwd=tree),
    "amended commit": lambda tree: git(
        "commit", "-q", "--amend", "--reset-author", "-CHEAD", cwd=tree
    ),
    "other upstream": lambda tree: git("remote", "set-url", "origin", "file:///else", cwd=tree),
    "broken repository": lambda tree: (tree / ".git" / "HEAD").unlink(),
}


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS)
def test_drift_is_seen_and_mended(drift, tree, wanted):
    head = git("rev-parse", "HEAD", cwd=tree)
    drift(tree)

    assert plan_of(source.prepared, **wanted)
    assert converge(source.prepared, **wanted)

    assert git("rev-parse", "HEAD", cwd=tree) == head
    assert git("status", "--porcelain", cwd=tree) == ""
    assert not converge(source.prepared, **wanted)


def test_a_git_that_was_killed_is_no_obstacle(tree, wanted):
    (tree / "greeting").write_text("bye\n")
    (tree / ".git" / "index.lock").touch()
    (tree / ".git" / "refs" / "heads" / f"{source.BRANCH}.lock").touch()
    assert converge(source.prepared, **wanted)
    assert not converge(source.prepared, **wanted)


def test_ignored_files_stay(tree, wanted):
    (tree / "kernel.o").write_text("an hour's work\n")
    (tree / "junk").write_text("junk\n")
    assert converge(source.prepared, **wanted)
    assert (tree / "kernel.o").exists()


def test_a_moved_tag_does_not_move_the_tree(tree, wanted, upstream):
    head = git("rev-parse", "HEAD", cwd=tree)
    git("commit", "-q", "--allow-empty", "-m", "two", cwd=upstream)
    git("tag", "-f", "v1.0", cwd=upstream)
    assert not converge(source.prepared, **wanted)
    assert git("rev-parse", "HEAD", cwd=tree) == head


FAILURES = {
    "no such tag": ({"tag": "v9.9"}, "tag v9.9 does not exist"),
    "patch does not apply": (
        {
            "patches": (
                Patch("bad.patch", PATCH.text.replace("-hello", "-ciao"), "0.9 only", False),
            )
        },
        "patch bad.patch does not apply to v1.0 (it is for 0.9 only): "
        "error: patch failed: greeting:1",
    ),
}


@pytest.mark.parametrize(("change", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failure_says_why_and_leaves_the_tree_alone(change, message, tree, wanted, capfd):
    before = git("rev-parse", "HEAD", cwd=tree)
    with pytest.raises(PyinfraError, match="No hosts remaining"):
        converge(source.prepared, **{**wanted, "source": replace(wanted["source"], **change)})
    assert message in capfd.readouterr().err
    assert git("rev-parse", "HEAD", cwd=tree) == before
    assert git("status", "--porcelain", cwd=tree) == ""
