"""What instances are launched into: subnets, security groups and the instance profile.

All of these are given to us and only looked at; none is ever made or changed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from facts.aws import DENIED, Aws, AwsError

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef, SecurityGroupTypeDef


@dataclass(frozen=True)
class Place:
    """A subnet, and the zone and VPC that it lies in."""

    subnet: str
    zone: str
    vpc: str
    free: int  # addresses left


def places(aws: Aws, *, subnets: Sequence[str], zones: Sequence[str]) -> list[Place]:
    """Return these subnets; or the default ones of these zones; or, with neither, all default."""
    filters: list[FilterTypeDef] = [{"Name": "default-for-az", "Values": ["true"]}]
    if subnets:
        filters = [{"Name": "subnet-id", "Values": list(subnets)}]
    elif zones:
        filters.append({"Name": "availability-zone", "Values": list(zones)})
    with aws.asking("look at the subnets"):
        pages = aws.ec2.get_paginator("describe_subnets").paginate(Filters=filters)
        raws = [raw for page in pages for raw in page["Subnets"]]
    found = [
        Place(
            subnet=raw["SubnetId"],
            zone=raw["AvailabilityZone"],
            vpc=raw["VpcId"],
            free=raw["AvailableIpAddressCount"],
        )
        for raw in raws
    ]
    return sorted(found, key=lambda place: (place.zone, place.subnet))


def offering_zones(aws: Aws, type_: str) -> set[str]:
    """Return the zones of this region that have an instance type at all."""
    with aws.asking(f"ask which zones have {type_}"):
        pages = aws.ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": [type_]}],
        )
        return {raw["Location"] for page in pages for raw in page["InstanceTypeOfferings"]}


def usable(found: Collection[Place], offering: Collection[str]) -> list[Place]:
    """Return the places whose zone has the type and that have an address left."""
    return [place for place in found if place.zone in offering and place.free]


def unusable(found: Collection[Place], offering: Collection[str], type_: str) -> str:
    """Return why no place is usable, and what to do."""
    if not found:
        return "no such subnet here: set subnets, or zones that have a default subnet"
    if not {place.zone for place in found} & set(offering):
        where = ", ".join(sorted(offering)) or "no zone of this region"
        return (
            f"{type_} is offered in {where}, and no subnet given lies there: set subnets or zones"
        )
    return "every subnet in a fitting zone is out of addresses: set others in subnets"


@dataclass(frozen=True)
class Group:
    """A security group."""

    id: str
    vpc: str
    open: bool  # some inbound rule is for the whole internet


def groups(aws: Aws, ids: Sequence[str]) -> list[Group]:
    """Return those of these security groups that exist."""
    if not ids:
        return []
    with aws.asking("look at the security groups"):
        pages = aws.ec2.get_paginator("describe_security_groups").paginate(
            Filters=[{"Name": "group-id", "Values": list(ids)}]
        )
        return [
            Group(raw["GroupId"], raw.get("VpcId", ""), _is_open(raw))
            for page in pages
            for raw in page["SecurityGroups"]
        ]


def _is_open(raw: "SecurityGroupTypeDef") -> bool:
    for rule in raw.get("IpPermissions", []):
        v4 = [entry.get("CidrIp") for entry in rule.get("IpRanges", [])]
        v6 = [entry.get("CidrIpv6") for entry in rule.get("Ipv6Ranges", [])]
        if "0.0.0.0/0" in v4 or "::/0" in v6:
            return True
    return False


@dataclass(frozen=True)
class Findings:
    """What forbids a launch, and what is only worth saying."""

    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def judge_groups(found: Sequence[Group], ids: Sequence[str], vpcs: Collection[str]) -> Findings:
    """Return what is wrong with the security groups `ids` for instances in these VPCs."""
    missing = sorted(set(ids) - {group.id for group in found})
    return Findings(
        faults=(
            *(f"there is no security group {id} here: set security_groups" for id in missing),
            *(
                f"the security group {group.id} is of {group.vpc}, the subnets are of "
                f"{', '.join(sorted(vpcs))}: set security_groups or subnets"
                for group in found
                if set(vpcs) != {group.vpc}
            ),
        ),
        warnings=tuple(
            f"the security group {group.id} lets the whole internet in; no port is needed"
            for group in found
            if group.open
        ),
    )


def judge_profile(aws: Aws, name: str) -> Findings:
    """Return what is wrong with an instance profile; that it may not be read is a warning."""
    try:
        with aws.asking(f"look at the instance profile {name}"):
            answer = aws.iam.get_instance_profile(InstanceProfileName=name)
    except AwsError as error:
        if error.code in DENIED:
            return Findings(warnings=(str(error),))
        if error.code != "NoSuchEntity":
            raise
        fault = f"there is no instance profile {name}: make it as docs/iam/ says, or name another"
        return Findings(faults=(fault,))
    if not answer["InstanceProfile"]["Roles"]:
        return Findings(faults=(f"the instance profile {name} has no role: docs/iam/ has one",))
    return Findings()
