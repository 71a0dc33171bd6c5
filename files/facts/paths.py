"""Print what lies at each path given, as JSON; argument 1 says whether to include text contents."""

import grp
import hashlib
import json
import os
import pwd
import stat
import sys

LARGEST_CONTENT = 256 * 1024  # bytes; a managed text file is far smaller, a diff of more unreadable


def owner(lookup, number):
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)


def kind_of(mode):
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "other"


def describe(path, with_content):
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"kind": "absent"}
    found = {
        "kind": kind_of(status.st_mode),
        "mode": format(stat.S_IMODE(status.st_mode), "o"),
        "user": owner(pwd.getpwuid, status.st_uid),
        "group": owner(grp.getgrgid, status.st_gid),
    }
    if found["kind"] == "file":
        with open(path, "rb") as file:
            content = file.read()
        found["sha256"] = hashlib.sha256(content).hexdigest()
        if with_content and len(content) <= LARGEST_CONTENT:
            found["content"] = content.decode("utf-8", "replace")
    return found


with_content, *paths = sys.argv[1:]
print(json.dumps({path: describe(path, with_content == "content") for path in paths}))
