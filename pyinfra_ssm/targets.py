"""Which instances a tag names, and which of them can be reached: EC2's and SSM's view together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyinfra_ssm._account import Account

_MOST_VALUES = 50  # of a filter; the API takes 100


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance. `unreachable` says why it cannot be worked on; empty when it can."""

    instance_id: str
    instance_type: str = ""
    name: str = ""
    unreachable: str = ""


def find(account: Account, tags: Mapping[str, str]) -> list[Instance]:
    """Return the instances that carry all `tags`, by id; terminated ones are not listed.

    `*` and `?` in a value are wildcards. Hosts outside of EC2 (mi-...) are found by their tags in
    SSM, which knows no wildcards. Raises ServiceError.
    """
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    rows = [
        row
        for page in account.pages("ec2", "describe_instances", Filters=filters)
        for reservation in page["Reservations"]
        for row in reservation["Instances"]
    ]
    ids = [row["InstanceId"] for row in rows]
    return merge(rows, [*_nodes_of(account, ids), *_tagged_nodes(account, tags)])


def _nodes_of(account: Account, ids: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield SSM's view of instances. Not by their tags, whose wildcards only EC2 knows."""
    for at in range(0, len(ids), _MOST_VALUES):
        yield from _nodes(account, {"InstanceIds": ids[at : at + _MOST_VALUES]})


def _tagged_nodes(account: Account, tags: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    return _nodes(account, {f"tag:{key}": [value] for key, value in tags.items()})


def _nodes(account: Account, wanted: Mapping[str, Sequence[str]]) -> Iterator[Mapping[str, Any]]:
    filters = [{"Key": key, "Values": list(values)} for key, values in wanted.items()]
    for page in account.pages("ssm", "describe_instance_information", Filters=filters):
        yield from page["InstanceInformationList"]


def merge(rows: Iterable[Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]]) -> list[Instance]:
    """Return what EC2's rows and SSM's nodes say together."""
    pings = {str(node["InstanceId"]): str(node["PingStatus"]) for node in nodes}
    found = [
        Instance(
            row["InstanceId"],
            row.get("InstanceType", ""),
            _name(row),
            _trouble(row["State"]["Name"], pings.pop(row["InstanceId"], None)),
        )
        for row in rows
        if row["State"]["Name"] not in ("terminated", "shutting-down")
    ]
    hybrid = (each for each in pings.items() if each[0].startswith("mi-"))
    found += [Instance(node, unreachable=_trouble("running", ping)) for node, ping in hybrid]
    return sorted(found, key=lambda instance: instance.instance_id)


def _name(row: Mapping[str, Any]) -> str:
    return next((str(tag["Value"]) for tag in row.get("Tags", []) if tag["Key"] == "Name"), "")


def _trouble(state: str, ping: str | None) -> str:
    if state != "running":
        return f"it is {state}"
    if ping is None:
        return "SSM does not know it: no agent, no instance role, or no way to the service"
    if ping != "Online":
        return f"its agent is {ping}"
    return ""
