"""`python -m benchmarks.ssm [NAME ...]`: measure, and print one line a target.

A line is `name value target ok|short`; the exit code is 1 if any is short. Names choose parts.
"""

import sys
from collections.abc import Callable, Iterator

from benchmarks.ssm import deploys, fleet_run, one_host
from benchmarks.ssm.target import Target, verdict

PARTS: dict[str, Callable[[], Iterator[Target]]] = {
    "commands": one_host.commands,
    "files": one_host.files,
    "fleet": fleet_run.measure,
    "foresight": deploys.foresight,
    "deploy": deploys.rehearsed,
    "bad-line": one_host.bad_line,
}


def main(names: list[str]) -> int:
    """Measure the named parts, or all."""
    unknown = set(names) - set(PARTS)
    if unknown:
        print(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    targets = []
    for name in names or PARTS:
        for target in PARTS[name]():
            print(target.line(), flush=True)
            targets.append(target)
    return verdict(targets)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
