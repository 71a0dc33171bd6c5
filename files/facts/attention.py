"""Print whether a tree's attention kernels were checked, and Triton's version, as JSON.

Argument 1 is the record of the check. Runs in the interpreter that has Triton, or lacks it.
"""

import importlib.metadata as metadata
import json
import sys


def recorded(path):
    """Return the digest of what was checked, or None where there is no record to be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


print(json.dumps({"digest": recorded(sys.argv[1]), "triton": version("triton")}))
