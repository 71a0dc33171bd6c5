"""Print which of the named packages dpkg has, and what an interrupted dpkg left, as JSON."""

import json
import os
import re
import subprocess
import sys

QUERY = ["dpkg-query", "--show", "--showformat"]
FORMAT = "${Package}\t${db:Status-Status}\t${db:Status-Eflag}\t${Version}\n"
SETTLED = {"installed", "not-installed", "config-files"}
# dpkg keeps numbered journals here; one that remains means that it was killed.
JOURNALS = "/var/lib/dpkg/updates"
# Only what is installed is asked about: without lists and caches apt reads the status of dpkg,
# which takes a fifteenth of the time. As root it would also write its caches anew where old.
CHECK = [
    "apt-get",
    "-o=Debug::NoLocking=1",
    "-o=Dir::Etc::SourceList=/dev/null",
    "-o=Dir::Etc::SourceParts=/dev/null",
    "-o=Dir::Cache::pkgcache=",
    "-o=Dir::Cache::srcpkgcache=",
    "check",
]


def known():
    """Return one row a package: name, status, error flag, version."""
    done = subprocess.run([*QUERY, FORMAT], capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def unmet():
    """Return the packages whose dependencies are not there: apt refuses all work until they are."""
    plain = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(CHECK, capture_output=True, text=True, env=plain)
    return sorted(set(re.findall(r"^ (\S+) : (?:Pre)?Depends:", done.stdout, re.MULTILINE)))


def main(wanted):
    rows = known()
    found = {
        "installed": {
            name: version
            for name, status, _, version in rows
            if name in wanted and status == "installed"
        },
        "unfinished": sorted({name for name, status, _, _ in rows if status not in SETTLED}),
        "damaged": sorted({name for name, _, flag, _ in rows if flag == "reinstreq"}),
        "journals": sorted(name for name in os.listdir(JOURNALS) if name.isdigit()),
        "unmet": unmet(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(set(sys.argv[1:]))
