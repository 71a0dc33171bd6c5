"""Print what lies at each path given, as JSON; of those before a lone -- the text as well."""

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


border = sys.argv.index("--")
shown, others = sys.argv[1:border], sys.argv[border + 1 :]
found = {path: describe(path, True) for path in shown}
print(json.dumps(found | {path: describe(path, False) for path in others}))
