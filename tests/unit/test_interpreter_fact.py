"""The fact reads metadata by itself, for speed: it must tell what importlib.metadata tells."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FACT = Path(__file__).resolve().parents[2] / "files" / "facts" / "interpreter.py"


def installed(*paths):
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = (sys.executable, FACT)
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=surroundings)
    return json.loads(told.stdout)["installed"]


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_what_is_installed_here_is_told_as_the_library_tells_it():
    library = {
        re.sub(r"[-_.]+", "-", each.name).lower(): each.version
        for each in importlib.metadata.distributions()
    }
    assert installed() == library


LAYOUTS = {
    "a wheel": ("ours-1.5.dist-info/METADATA", "Metadata-Version: 2.4\nName: ours\nVersion: 1.5\n"),
    "fields in another order": ("x-1.dist-info/METADATA", "Version: 1.5\nName: ours\n\nbody\n"),
    "setuptools of old": ("ours-1.5.egg-info/PKG-INFO", "Name: ours\nVersion: 1.5\n"),
    "distutils": ("ours-1.5.egg-info", "Name: ours\nVersion: 1.5\n"),
    "windows ends of line": ("ours-1.5.dist-info/METADATA", "Name: ours\r\nVersion: 1.5\r\n\r\n"),
    "bytes that are no text": (
        "ours-1.dist-info/METADATA",
        "Name: ours\nVersion: 1.5\nAuthor: \udcff",
    ),
}


@pytest.mark.parametrize(("path", "text"), LAYOUTS.values(), ids=LAYOUTS)
def test_each_layout_is_read(tmp_path, path, text):
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert installed(tmp_path)["ours"] == "1.5"


LEFTOVERS = {
    "half removed": ("ours-1.5.dist-info/RECORD", "ours.py,,\n"),
    "without a name": ("ours-1.5.dist-info/METADATA", "Version: 1.5\n"),
    "named in its description only": ("ours-1.5.dist-info/METADATA", "A: b\n\nName: ours\n"),
}


@pytest.mark.parametrize(("path", "text"), LEFTOVERS.values(), ids=LEFTOVERS)
def test_what_is_no_distribution_is_not_told(tmp_path, path, text):
    written(tmp_path / path, text)
    assert "ours" not in installed(tmp_path)


def test_of_two_with_one_name_the_imported_one_is_told(tmp_path):
    written(tmp_path / "first" / "Our.Own-2.dist-info" / "METADATA", "Name: Our.Own\nVersion: 2\n")
    written(tmp_path / "second" / "our_own-3.dist-info" / "METADATA", "Name: our_own\nVersion: 3\n")
    assert installed(tmp_path / "first", tmp_path / "second")["our-own"] == "2"
