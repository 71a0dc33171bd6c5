"""Print how far each benchmark run on a host is, and digests of what it serves from, as JSON.

Argument 1 is the directory of the runs, the others are files whose change asks for a new run.
"""

import hashlib
import json
import os
import sys


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def describe(directory):
    """Return the id, whether the run is whole, and how many of its cells are kept."""
    begun = read(os.path.join(directory, "plan.json")) or {}
    cells = os.path.join(directory, "cells")
    kept = [name for name in os.listdir(cells) if name.endswith(".json")]
    whole = read(os.path.join(directory, "run.json"))
    return {"id": begun.get("id"), "whole": whole is not None, "cells": len(kept)}


def digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None


root, *paths = sys.argv[1:]
names = os.listdir(root) if os.path.isdir(root) else []
runs = {name: os.path.join(root, name) for name in names}
print(
    json.dumps(
        {
            "files": {path: digest(path) for path in paths},
            "runs": {
                name: describe(directory)
                for name, directory in runs.items()
                if os.path.isdir(os.path.join(directory, "cells"))
            },
        }
    )
)
