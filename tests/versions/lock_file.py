"""Read a lock file the way pip does, strictly."""

import re
from dataclasses import dataclass

from packaging.requirements import Requirement

HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Locked:
    """One distribution of a lock: `name==version [; marker]` and the hashes of its wheels."""

    requirement: Requirement
    hashes: frozenset[str]

    @property
    def version(self) -> str:
        (pin,) = self.requirement.specifier
        return pin.version


def parse(text: str) -> list[Locked]:
    """Return the distributions; ValueError names a line that is no pin with hashes."""
    locked = []
    lines = re.sub(r" \\\n", " ", text).splitlines()
    for line in (line for line in lines if not line.startswith("#")):
        pin, *hashes = re.split(r"\s+(?=--hash=)", line)
        requirement = Requirement(pin)
        digests = [HASH.fullmatch(entry) for entry in hashes]
        operators = [item.operator for item in requirement.specifier]
        if operators != ["=="] or requirement.url or not digests or not all(digests):
            raise ValueError(f"not a pin with hashes: {line!r}")
        locked.append(Locked(requirement, frozenset(match[1] for match in digests if match)))
    return locked
