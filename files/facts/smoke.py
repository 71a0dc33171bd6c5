"""Print what the last smoke check found, and the digests of what a host serves from, as JSON.

Argument 1 is the record of the check, the others are files whose change asks for a new one.
"""

import hashlib
import json
import sys


def recorded(path):
    """Return the fields that decide, or None where there is no record that can be read."""
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        return {key: record[key] for key in ("digest", "passed", "complaints", "at")}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None


record, *paths = sys.argv[1:]
print(json.dumps({"record": recorded(record), "files": {path: digest(path) for path in paths}}))
