"""What has drifted, for cron and CI: `make drift`, or `python -m drift INVENTORY [pyinfra flags]`.

Asks a dry run and prints what a run would change, and why. Exit status 0: nothing; 2: drift;
1: something could not be asked. A host that fails does not hide the others.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

CLEAN, ERROR, DRIFT = 0, 1, 2
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Change:
    """What a run would do on one host; `reasons` say what was found and what is wanted."""

    host: str
    operation: str
    reasons: tuple[str, ...]


def changes_in(report: str, log: str) -> list[Change]:
    """Return the changes that pyinfra's JSON plan names, with the reasons that its log gives.

    Raises:
        ValueError: the report is not a plan, as when no host could be asked at all.
    """
    plan = json.loads(report)["plan"]
    lines = _ANSI.sub("", log).splitlines()
    return [
        Change(host, entry["names"][0], _reasons(lines, host, entry["names"][0]))
        for entry in plan
        for host in (*entry["hosts_with_change"], *entry["hosts_with_conditional_change"])
    ]


def _reasons(lines: Sequence[str], host: str, operation: str) -> tuple[str, ...]:
    start = re.compile(rf"\s*\[{re.escape(host)}\]\s+{re.escape(operation)}: (.*)")
    return tuple(found[1] for line in lines if (found := start.fullmatch(line)))


def table(changes: Sequence[Change]) -> str:
    """Return the changes as text, host by host."""
    lines = []
    for host in sorted({change.host for change in changes}):
        lines.append(host)
        for change in changes:
            if change.host == host:
                lines.append(f"  {change.operation}")
                lines += [f"    {reason}" for reason in change.reasons]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    inventory, *flags = arguments or ("inventory.py",)
    command = [sys.executable, "-m", "pyinfra", inventory, "deploy.py", "--dry", "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        changes = changes_in(done.stdout, done.stderr)
    except (ValueError, KeyError):
        print(done.stderr, file=sys.stderr, end="")
        print("drift: no host could be asked; what pyinfra said is above", file=sys.stderr)
        return ERROR
    print(table(changes) or "nothing has drifted")
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, end="")
        print("drift: some hosts could not be asked; the reasons are above", file=sys.stderr)
        return ERROR
    return DRIFT if changes else CLEAN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
