"""EC2 instances of ours, and what Systems Manager says of them.

What is asked here is asked of AWS from this machine, not of a host, so these are plain functions
and not pyinfra facts: `Aws` in, frozen values out. Nothing here writes.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from desired.fleet import MANAGED_BY
from facts.aws import Aws, AwsError

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef, InstanceTypeDef

Market = Literal["spot", "on-demand"]

# The states in which an instance exists, costs or can cost, and bears its name.
LIVING = ("pending", "running", "stopping", "stopped")
PAGE = 100  # instances a page; the largest that EC2 takes is 1000
BATCH = 50  # instance ids in one filter of DescribeInstanceInformation


@dataclass(frozen=True)
class Instance:
    """One EC2 instance, as DescribeInstances tells of it."""

    id: str
    name: str
    type: str
    state: str  # pending, running, stopping, stopped, shutting-down or terminated
    market: Market
    launched: datetime  # the last start, not the creation; with a time zone
    zone: str
    subnet: str
    vpc: str
    image: str
    architecture: str
    profile: str  # name of the instance profile; empty without one
    groups: frozenset[str]  # security group ids
    public: bool  # has a public address
    root_volume: str
    reason: str  # why it is in its state, where EC2 says: "Server.SpotInstanceTermination: ..."
    source: str  # the tag Image: which image was asked for


@dataclass(frozen=True)
class Agent:
    """What Systems Manager knows of an instance."""

    ping: str  # Online, ConnectionLost or Inactive
    version: str
    platform: str


def family_letters(type_: str) -> str:
    """Return the letters before the generation of an instance type: `g` of g5g.xlarge."""
    family = type_.partition(".")[0]
    return family[: len(family) - len(family.lstrip("abcdefghijklmnopqrstuvwxyz-"))]


def parse_instance(raw: "InstanceTypeDef") -> Instance:
    """Return the instance that one entry of DescribeInstances describes."""
    tags = {tag.get("Key", ""): tag.get("Value", "") for tag in raw.get("Tags", [])}
    return Instance(
        id=raw["InstanceId"],
        name=tags.get("Name", ""),
        type=raw["InstanceType"],
        state=raw["State"]["Name"],
        # The key is absent, not "on-demand", for an on-demand instance.
        market="spot" if raw.get("InstanceLifecycle") == "spot" else "on-demand",
        launched=raw["LaunchTime"],
        zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
        subnet=raw.get("SubnetId", ""),
        vpc=raw.get("VpcId", ""),
        image=raw.get("ImageId", ""),
        architecture=raw.get("Architecture", ""),
        profile=raw.get("IamInstanceProfile", {}).get("Arn", "").rpartition("/")[2],
        groups=frozenset(group["GroupId"] for group in raw.get("SecurityGroups", [])),
        public=bool(raw.get("PublicIpAddress")),
        root_volume=_root_volume(raw),
        reason=_reason(raw),
        source=tags.get("Image", ""),
    )


def _root_volume(raw: "InstanceTypeDef") -> str:
    """Return the id of the root volume; empty once it is detached."""
    for mapping in raw.get("BlockDeviceMappings", []):
        if mapping.get("DeviceName") == raw.get("RootDeviceName"):
            return mapping.get("Ebs", {}).get("VolumeId", "")
    return ""


def _reason(raw: "InstanceTypeDef") -> str:
    """Return EC2's code and words for the last change of state; the words repeat the code."""
    code = raw.get("StateReason", {}).get("Code", "")
    words = raw.get("StateReason", {}).get("Message", "")
    if not code or words.startswith(code):
        return words
    return f"{code}: {words}"


def instances(aws: Aws, *, name: str | None = None) -> list[Instance]:
    """Return our instances, by name and age; also those that EC2 still shows as terminated.

    Ours are those with the tag ManagedBy, and with the tag Name if `name` is given.
    """
    filters: list[FilterTypeDef] = [{"Name": "tag:ManagedBy", "Values": [MANAGED_BY]}]
    if name is not None:
        filters.append({"Name": "tag:Name", "Values": [name]})
    found = []
    with aws.asking("list the instances of " + (name or MANAGED_BY)):
        pages = aws.ec2.get_paginator("describe_instances").paginate(
            Filters=filters, PaginationConfig={"PageSize": PAGE}
        )
        for page in pages:
            for reservation in page["Reservations"]:
                found += [parse_instance(raw) for raw in reservation["Instances"]]
    return sorted(found, key=lambda instance: (instance.name, instance.launched, instance.id))


def by_id(aws: Aws, ids: Collection[str]) -> dict[str, Instance]:
    """Return these instances by id, without those that EC2 does not know (yet).

    EC2 may answer InvalidInstanceID.NotFound for some seconds after it made an instance.
    """
    try:
        with aws.asking(f"look at {', '.join(sorted(ids))}"):
            answer = aws.ec2.describe_instances(InstanceIds=sorted(ids))
    except AwsError as error:
        if error.code == "InvalidInstanceID.NotFound":
            return {}
        raise
    raws = [raw for entry in answer["Reservations"] for raw in entry["Instances"]]
    return {raw["InstanceId"]: parse_instance(raw) for raw in raws}


def living(found: Collection[Instance]) -> list[Instance]:
    """Return those that are neither terminated nor about to be."""
    return [instance for instance in found if instance.state in LIVING]


def agents(aws: Aws, ids: Collection[str]) -> dict[str, Agent]:
    """Return what Systems Manager knows of these instances, by id; unknown ones are absent."""
    known = {}
    with aws.asking("ask Systems Manager which instances are online"):
        pages = aws.ssm.get_paginator("describe_instance_information")
        for batch in _batches(sorted(ids)):
            for page in pages.paginate(Filters=[{"Key": "InstanceIds", "Values": batch}]):
                for raw in page["InstanceInformationList"]:
                    known[raw["InstanceId"]] = Agent(
                        ping=raw.get("PingStatus", "Inactive"),
                        version=raw.get("AgentVersion", ""),
                        platform=f"{raw.get('PlatformName', '')} {raw.get('PlatformVersion', '')}",
                    )
    return known


def online(aws: Aws, found: Iterable[Instance]) -> frozenset[str]:
    """Return the ids of those that run and that Systems Manager reaches now."""
    running = [instance.id for instance in found if instance.state == "running"]
    known = agents(aws, running) if running else {}
    return frozenset(id for id, agent in known.items() if agent.ping == "Online")


def _batches(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), BATCH):
        yield list(ids[start : start + BATCH])


@dataclass(frozen=True)
class Volume:
    """A volume, as far as it can differ from the knobs."""

    gib: int
    kind: str  # gp3, ...
    encrypted: bool


def volumes(aws: Aws, ids: Collection[str]) -> dict[str, Volume]:
    """Return these volumes by id."""
    if not ids:
        return {}
    with aws.asking("look at the volumes"):
        pages = aws.ec2.get_paginator("describe_volumes").paginate(
            Filters=[{"Name": "volume-id", "Values": sorted(ids)}]
        )
        raws = [raw for page in pages for raw in page["Volumes"]]
    return {
        raw["VolumeId"]: Volume(raw["Size"], raw["VolumeType"], raw["Encrypted"]) for raw in raws
    }
