"""The distributions that a lock file names, installed in one interpreter exactly as locked."""

import re
from collections.abc import Collection, Generator, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from facts.interpreter import FoundInterpreter, Interpreter
from operations.answers import ask
from operations.live import Live
from operations.programs import alone, program
from operations.steps import Refusal, Step, carry_out

MOST_NAMED = 5  # distributions in a reason; the count says the rest


def parse_lock(text: str) -> list[Requirement]:
    """Return the requirements of a hashed lock file; ValueError names a line that is none.

    Only `name==version [; marker]` is a lock: anything looser could install another thing tomorrow.
    """
    lines = re.sub(r"\\\n", " ", text).splitlines()
    requirements = []
    for line in lines:
        entry = line.split("#", 1)[0].split("--hash", 1)[0].strip()
        if not entry:
            continue
        try:
            requirement = Requirement(entry)
        except InvalidRequirement as error:
            raise ValueError(f"not a locked requirement: {entry!r}") from error
        if [item.operator for item in requirement.specifier] != ["=="]:
            raise ValueError(f"not pinned to one version: {entry!r}")
        requirements.append(requirement)
    return requirements


def wanted_versions(
    requirements: list[Requirement], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return canonical name -> version of what applies in a marker environment."""
    return {
        canonicalize_name(entry.name): next(iter(entry.specifier)).version
        for entry in requirements
        if entry.marker is None or entry.marker.evaluate(dict(environment))
    }


def pins(lock: str, names: Collection[str]) -> list[str]:
    """Return the locked requirements of the named distributions, as text, in their order."""
    return [str(entry) for entry in parse_lock(lock) if canonicalize_name(entry.name) in names]


def plan(found: FoundInterpreter | None, lock: str, python: str) -> list[Step | Refusal]:
    """Return the one pip run that makes the interpreter hold what the lock names."""
    if found is None:
        return [Refusal(f"found no {python}, wanted the interpreter with torch: set python.")]
    wanted = wanted_versions(parse_lock(lock), found["environment"])
    faults = [
        f"{name} is {found['installed'].get(name, 'missing')}, wanted {version}"
        for name, version in sorted(wanted.items())
        if found["installed"].get(name) != version
    ]
    if not faults:
        return []
    shown = "; ".join(faults[:MOST_NAMED])
    more = f"; and {len(faults) - MOST_NAMED} more" if len(faults) > MOST_NAMED else ""
    install = program("python/install.py", python, str(len(wanted)), stdin=lock)
    return [Step(f"{python}: {shown}{more}", Live(alone(install, python)))]


@operation()
def installed(lock: Path, python: str) -> Generator[PyinfraCommand, None, None]:
    """Install what a hashed lock names and is not there in that version.

    Dependencies are not resolved: the lock is the resolution. So nothing that it does not name is
    touched, torch least of all.
    """
    found = ask(Interpreter, python=python)
    yield from carry_out(plan(found, lock.read_text(), python), settled=f"as {lock.name} says")
