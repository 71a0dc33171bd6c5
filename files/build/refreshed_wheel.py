"""Take changed Python files of a source tree into the wheel that an earlier commit of it became.

What is compiled stays byte for byte what it was: minutes of compiling for a changed line of Python
were the reason for this. Uses the `wheel` distribution, so the wheel's RECORD is true again.
"""

import glob
import os
import shutil
import subprocess
import sys

PACKAGE = "vllm/"


def changed_files(tree, old, new):
    """Return path -> git's status letter (A, D, M) of what differs; None where `old` is gone."""
    command = ("git", "-C", tree, "diff", "--name-status", "--no-renames", "-z", old, new)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return None
    fields = done.stdout.split("\0")[:-1]
    return dict(zip(fields[1::2], fields[0::2], strict=True))


def is_python_only(changes):
    return all(path.startswith(PACKAGE) and path.endswith(".py") for path in changes)


def take_over(tree, changes, unpacked):
    for path, status in changes.items():
        place = os.path.join(unpacked, path)
        if status == "D":
            os.remove(place)
            continue
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copyfile(os.path.join(tree, path), place)


def refreshed(wheel, tree, changes, folder):
    """Return the path of a new wheel in `folder` with the tree's state of the changed files."""
    shutil.rmtree(folder, ignore_errors=True)
    tool = (sys.executable, "-m", "wheel")
    subprocess.run((*tool, "unpack", wheel, "--dest", folder), check=True)
    (unpacked,) = glob.glob(os.path.join(folder, "*"))
    take_over(tree, changes, unpacked)
    subprocess.run((*tool, "pack", unpacked, "--dest-dir", folder), check=True)
    shutil.rmtree(unpacked)
    (made,) = glob.glob(os.path.join(folder, "*.whl"))
    return made
