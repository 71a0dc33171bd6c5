"""The knobs as group_data/ has them, read from its text so that comments count."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUP_DATA = ROOT / "group_data"
HOST_GROUPS = sorted(
    path.stem for path in GROUP_DATA.glob("*.py") if path.stem not in ("all", "@local", "__init__")
)
# Code that acts on knobs; tests do not count as readers.
READERS = [
    *ROOT.glob("*.py"),
    *(
        path
        for folder in ("desired", "facts", "operations", "report", "tasks")
        for path in (ROOT / folder).glob("*.py")
    ),
]


def assigned(group: str) -> dict[str, int]:
    """Return {knob: line} of all that a file of group_data/ sets."""
    tree = ast.parse((GROUP_DATA / f"{group}.py").read_text())
    found = {}
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        found.update({t.id: statement.lineno for t in targets if isinstance(t, ast.Name)})
    return found


def values(group: str) -> dict[str, object]:
    """Return {knob: value} as pyinfra would read the file."""
    namespace: dict[str, object] = {}
    exec((GROUP_DATA / f"{group}.py").read_text(), namespace)
    return {knob: namespace[knob] for knob in assigned(group)}


def undocumented(group: str) -> list[str]:
    """Return the knobs above which, or above whose neighbours, no comment stands."""
    lines = (GROUP_DATA / f"{group}.py").read_text().splitlines()
    return [knob for knob, line in assigned(group).items() if not _explained(lines, line - 1)]


def _explained(lines: list[str], index: int) -> bool:
    while index > 0 and lines[index - 1].strip():
        index -= 1
        if lines[index].startswith("#"):
            return True
    return False


def read_attributes() -> Iterator[str]:
    """Yield every name that some reader takes from an object, as in settings.NAME."""
    for path in READERS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                yield node.attr
