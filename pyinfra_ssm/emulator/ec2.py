"""DescribeInstances of EC2 (query protocol): enough of it to find instances by tag."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from pyinfra_ssm.emulator.account import ACCOUNT_ID, Account
from pyinfra_ssm.emulator.errors import ApiError
from pyinfra_ssm.emulator.instances import Instance
from pyinfra_ssm.emulator.pages import page

_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
_STATE_CODES = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}
# What EC2 calls the errors that every emulated API can give, and their HTTP status.
_ERROR_CODES = {
    "ThrottlingException": ("RequestLimitExceeded", 503),
    "AccessDeniedException": ("UnauthorizedOperation", 403),
}
Filters = Mapping[str, list[str]]


def describe_instances(account: Account, form: Mapping[str, str]) -> bytes:
    """Answer DescribeInstances with XML; `form` is the decoded query."""
    ids = _numbered(form, "InstanceId")
    unknown = [each for each in ids if each not in account.hosts]
    if unknown:
        raise ApiError(
            "InvalidInstanceID.NotFound", f"The instance ID '{unknown[0]}' does not exist"
        )
    filters = parse_filters(form)
    rows = [
        host.instance
        for host in account.hosts.values()
        if (not ids or host.instance.instance_id in ids) and matches(host.instance, filters)
    ]
    size = min(int(form.get("MaxResults", "1000")), account.faults.page_size)
    rows, token = page(rows, size, form.get("NextToken"), "InvalidNextToken")
    return _document(rows, token)


def parse_filters(form: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the values wanted, by filter name, from Filter.n.Name and Filter.n.Value.m."""
    names = {
        match[1]: value
        for key, value in form.items()
        if (match := re.fullmatch(r"Filter\.(\d+)\.Name", key))
    }
    return {name: _numbered(form, f"Filter.{n}.Value") for n, name in names.items()}


def matches(instance: Instance, filters: Filters) -> bool:
    """Say whether an instance passes; `*` and `?` in a value are wildcards, as EC2 has them."""
    return all(
        any(_wildcard(wanted).fullmatch(value) for wanted in values for value in _of(instance, key))
        for key, values in filters.items()
    )


def error_document(error: ApiError) -> tuple[int, bytes]:
    """Return the HTTP status and the XML for an error."""
    code, status = _ERROR_CODES.get(error.code, (error.code, error.status))
    root = ET.Element("Response")
    entry = ET.SubElement(ET.SubElement(root, "Errors"), "Error")
    _leaf(entry, "Code", code)
    _leaf(entry, "Message", error.message)
    _leaf(root, "RequestID", "00000000-0000-0000-0000-000000000000")
    return status, ET.tostring(root)


def _of(instance: Instance, key: str) -> Iterable[str]:
    """Return the values that an instance has under the name of a filter."""
    if key.startswith("tag:"):
        value = instance.tags.get(key.removeprefix("tag:"))
        return [] if value is None else [value]
    if key == "tag-key":
        return instance.tags
    attributes = {
        "instance-id": instance.instance_id,
        "instance-state-name": instance.state,
        "instance-type": instance.instance_type,
        "architecture": instance.architecture,
        "image-id": instance.image_id,
        "availability-zone": instance.availability_zone,
    }
    if key not in attributes:
        raise ApiError("InvalidParameterValue", f"The filter '{key}' is invalid")
    return [attributes[key]]


def _wildcard(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _numbered(form: Mapping[str, str], name: str) -> list[str]:
    return [value for key, value in form.items() if re.fullmatch(rf"{re.escape(name)}\.\d+", key)]


def _document(rows: Iterable[Instance], token: str | None) -> bytes:
    root = ET.Element("DescribeInstancesResponse", xmlns=_NAMESPACE)
    _leaf(root, "requestId", "00000000-0000-0000-0000-000000000000")
    reservations = ET.SubElement(root, "reservationSet")
    for instance in rows:
        reservation = ET.SubElement(reservations, "item")
        _leaf(reservation, "reservationId", instance.instance_id.replace("i-", "r-", 1))
        _leaf(reservation, "ownerId", ACCOUNT_ID)
        _add_instance(ET.SubElement(reservation, "instancesSet"), instance)
    if token is not None:
        _leaf(root, "nextToken", token)
    return ET.tostring(root)


def _add_instance(parent: ET.Element, instance: Instance) -> None:
    item = ET.SubElement(parent, "item")
    _leaf(item, "instanceId", instance.instance_id)
    _leaf(item, "imageId", instance.image_id)
    state = ET.SubElement(item, "instanceState")
    _leaf(state, "code", str(_STATE_CODES[instance.state]))
    _leaf(state, "name", instance.state)
    _leaf(item, "privateIpAddress", instance.private_ip)
    _leaf(item, "instanceType", instance.instance_type)
    _leaf(item, "architecture", instance.architecture)
    _leaf(item, "launchTime", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"))
    _leaf(ET.SubElement(item, "placement"), "availabilityZone", instance.availability_zone)
    tags = ET.SubElement(item, "tagSet")
    for key, value in instance.tags.items():
        tag = ET.SubElement(tags, "item")
        _leaf(tag, "key", key)
        _leaf(tag, "value", value)


def _leaf(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, name).text = text
