"""What has drifted, for cron and CI: `make drift`, or `vllm-g5g-drift [INVENTORY] [pyinfra flags]`.

Asks a dry run and prints what a run would change, and why. To be run in the folder of deploy.py,
whose inventory.py is asked if none is named. Exit status 0: nothing; 2: drift; 1: something could
not be asked. A host that fails does not hide the others.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INVENTORY, DEPLOY = "inventory.py", "deploy.py"
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


def absent(inventory: str, folder: Path) -> list[str]:
    """Return which of the files that a dry run needs are not in the folder.

    An inventory that is no file's name, such as @ssm/i-0123456789abcdef0, is pyinfra's to judge.
    """
    files = [inventory] if inventory.endswith(".py") else []
    return [name for name in (*files, DEPLOY) if not (folder / name).is_file()]


def main(arguments: Sequence[str]) -> int:
    """Ask, print, and return the exit status; see above for both."""
    if {"-h", "--help"} & set(arguments):
        print(__doc__, end="")
        return CLEAN
    named = bool(arguments) and not arguments[0].startswith("-")
    inventory, *flags = arguments if named else (INVENTORY, *arguments)
    if missing := absent(inventory, Path.cwd()):
        what = f"drift: {' and '.join(missing)} not found in {Path.cwd()}"
        print(f"{what}. Change to the folder that has deploy.py, then try again.", file=sys.stderr)
        return ERROR
    return ask(inventory, flags)


def ask(inventory: str, flags: Sequence[str]) -> int:
    """Run the dry run in this folder and tell what came of it, as an exit status too."""
    command = [sys.executable, "-m", "pyinfra", inventory, DEPLOY, "--dry", "--json", *flags]
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


def console() -> int:
    """Be the command `vllm-g5g-drift`."""
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(console())
