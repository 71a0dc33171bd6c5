"""Changed Python goes into the wheel that was built before; what is compiled stays as it is."""

import subprocess
import sys
import zipfile

import pytest

from files.build.refreshed_wheel import changed_files, is_python_only, refreshed

METADATA = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n"
TAGS = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
LIBRARY, SERVER = b"\x7fELF" + bytes(range(256)), b"#!/bin/sh\n"
MODULES = {"vllm/kept.py": "kept = 1\n", "vllm/edited.py": "old = 1\n", "vllm/gone.py": ""}
AFTER = {
    "vllm/kept.py": "kept = 1\n",
    "vllm/edited.py": "new = 1\n",
    "vllm/ops/added.py": "added = 1\n",
}


def git(tree, *arguments):
    identity = ("-c", "user.name=upstream", "-c", "user.email=upstream@localhost")
    command = ("git", "-C", tree, *identity, *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(tree, files):
    git(tree, "rm", "-r", "--quiet", "--ignore-unmatch", ".")
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "-m", "state")
    return git(tree, "rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "src"
    path.mkdir()
    git(path, "init", "--quiet")
    return path


@pytest.fixture
def wheel(tmp_path):
    """A wheel with Python, a library and an executable, as a build of MODULES leaves it."""
    unpacked = tmp_path / "unpacked"
    files = {path: text.encode() for path, text in MODULES.items()}
    files |= {"vllm/_C.abi3.so": LIBRARY, "vllm/vllm-rs": SERVER}
    files |= {"vllm-0.32.0.dist-info/METADATA": METADATA.encode()}
    files |= {"vllm-0.32.0.dist-info/WHEEL": TAGS.encode()}
    for path, content in files.items():
        (unpacked / path).parent.mkdir(parents=True, exist_ok=True)
        (unpacked / path).write_bytes(content)
    (unpacked / "vllm/vllm-rs").chmod(0o755)
    command = (sys.executable, "-m", "wheel", "pack", unpacked, "--dest-dir", tmp_path)
    subprocess.run(command, check=True, capture_output=True)
    (made,) = tmp_path.glob("*.whl")
    return made


def test_changed_python_is_taken_over_and_the_rest_is_untouched(tree, wheel, tmp_path):
    old, new = commit(tree, MODULES), commit(tree, AFTER)
    changes = changed_files(tree, old, new)
    assert changes == {"vllm/edited.py": "M", "vllm/gone.py": "D", "vllm/ops/added.py": "A"}

    made = refreshed(wheel, tree, changes, tmp_path / "made")

    target = tmp_path / "installed"
    options = ("--quiet", "--no-index", "--no-deps", "--target", target)
    pip = (sys.executable, "-m", "pip", "install", *options, made)
    subprocess.run(pip, check=True, capture_output=True)  # checks the wheel's RECORD
    installed = {
        str(path.relative_to(target)): path.read_text() for path in target.glob("vllm/**/*.py")
    }
    assert installed == AFTER
    assert (target / "vllm/_C.abi3.so").read_bytes() == LIBRARY
    assert (target / "vllm/vllm-rs").stat().st_mode & 0o111
    with zipfile.ZipFile(wheel) as untouched:
        assert untouched.read("vllm/edited.py") == b"old = 1\n"


def test_a_commit_that_is_gone_cannot_be_compared(tree):
    assert changed_files(tree, "0" * 40, commit(tree, MODULES)) is None


KINDS = {
    "nothing": ([], True),
    "Python of the package": (["vllm/a.py", "vllm/b/c.py"], True),
    "a kernel": (["vllm/a.py", "csrc/a.cu"], False),
    "the build itself": (["setup.py"], False),
    "another package's Python": (["tools/vllm/a.py"], False),
    "data of the package": (["vllm/a.json"], False),
}


@pytest.mark.parametrize(("paths", "only"), KINDS.values(), ids=KINDS)
def test_only_the_packages_own_python_can_be_taken_over(paths, only):
    assert is_python_only(paths) is only
