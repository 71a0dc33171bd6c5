"""Print the installed packages whose name matches, and whether each is held, as JSON."""

import json
import re
import subprocess
import sys

FORMAT = "${binary:Package}\t${Package}\t${db:Status-Status}\t${db:Status-Want}\n"


def main(pattern):
    query = ["dpkg-query", "--show", "--showformat", FORMAT]
    listed = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in listed.splitlines()]
    print(
        json.dumps(
            {
                qualified: want == "hold"
                for qualified, name, status, want in rows
                if status == "installed" and re.fullmatch(pattern, name)
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
