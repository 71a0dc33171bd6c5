"""The DEP-3 header of a patch file."""

import re

FIELD = re.compile(r"([A-Z][A-Za-z-]*): (\S.*)")


def parse(text: str) -> dict[str, list[str]]:
    """Return field -> values; ValueError names a line that is neither a field nor its folding.

    The header ends at the line `---`; continuation lines start with a space.
    """
    header, separator, _ = text.partition("\n---\n")
    if not separator:
        raise ValueError("no line --- ends the header")
    fields: dict[str, list[str]] = {}
    last: list[str] | None = None
    for line in header.splitlines():
        if match := FIELD.fullmatch(line):
            last = fields.setdefault(match[1], [])
            last.append(match[2])
        elif line.startswith(" ") and last is not None:
            last[-1] += "\n" + line[1:]
        else:
            raise ValueError(f"not a DEP-3 header line: {line!r}")
    return fields
