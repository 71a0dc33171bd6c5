"""Which instances a tag names, and which of them can be reached: EC2's and SSM's view together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra_ssm._account import Account


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance. `unreachable` says why it cannot be worked on; empty when it can."""

    instance_id: str
    instance_type: str = ""
    name: str = ""
    unreachable: str = ""


def find(account: Account, tags: Mapping[str, str]) -> list[Instance]:
    """Return the instances that carry all `tags`, by id; terminated ones are not listed.

    Raises ServiceError. Hosts outside of EC2 (mi-...) are found by their tags in SSM.
    """
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    rows = [
        row
        for page in account.pages("ec2", "describe_instances", Filters=filters)
        for reservation in page["Reservations"]
        for row in reservation["Instances"]
    ]
    wanted = [{"Key": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    nodes = [
        node
        for page in account.pages("ssm", "describe_instance_information", Filters=wanted)
        for node in page["InstanceInformationList"]
    ]
    return merge(rows, nodes)


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
