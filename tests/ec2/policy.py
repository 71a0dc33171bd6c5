"""Just enough of IAM to ask whether a policy of ours allows a request.

Knows Allow, wildcards in resources, and the condition operators that docs/iam/ uses; meets
anything else with an error rather than a guess.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

POLICIES = Path(__file__).parents[2] / "docs" / "iam"


@dataclass(frozen=True)
class Need:
    """One authorization: an action on a resource, with the context keys that IAM would see."""

    action: str
    resource: str = "*"
    context: Mapping[str, str] = field(default_factory=dict)


def statements(file_name: str) -> list[dict[str, Any]]:
    policy = json.loads((POLICIES / file_name).read_text())
    assert policy["Version"] == "2012-10-17"
    assert all(statement["Effect"] == "Allow" for statement in policy["Statement"])
    found: list[dict[str, Any]] = policy["Statement"]
    return found


def many(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def allows(statement: Mapping[str, Any], need: Need) -> bool:
    """Return whether this statement alone allows the need."""
    return (
        need.action in many(statement["Action"])
        and any(_matches(pattern, need) for pattern in many(statement["Resource"]))
        and all(
            _holds(operator, key, many(wanted), need.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, wanted in keys.items()
        )
    )


def _matches(pattern: str, need: Need) -> bool:
    if pattern == "*":
        return True
    filled = re.sub(r"\$\{(.*?)\}", lambda name: need.context.get(name[1], "\0"), pattern)
    regex = re.escape(filled).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(regex, need.resource) is not None


def _holds(operator: str, key: str, wanted: list[str], context: Mapping[str, str]) -> bool:
    match operator:
        case "StringEquals":
            return context.get(key) in wanted
        case "Null":
            return (key not in context) == (wanted == ["true"])
    raise ValueError(f"no such operator here: {operator}")
