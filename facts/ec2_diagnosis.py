"""Why Systems Manager does not reach an instance, as far as EC2's API can tell."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from facts.aws import Aws
from facts.ec2 import Agent, Instance

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import RouteTableTypeDef

# The agent needs both of these without a way out to the internet [AWS documentation].
ENDPOINTS = ("ssm", "ssmmessages")


@dataclass(frozen=True)
class Surroundings:
    """What an agent depends on."""

    internet: str  # where the subnet's default route leads: an id such as igw-..., or empty
    endpoints: frozenset[str]  # services that the VPC has an interface endpoint for
    checks: str  # EC2's status checks: ok, initializing, impaired, ... or empty


def causes(instance: Instance, agent: Agent | None, around: Surroundings) -> list[str]:
    """Return the likely causes, the surest first; never empty."""
    found = []
    if not instance.profile:
        found.append("it has no instance profile, so its agent may not register")
    private = set(ENDPOINTS) <= around.endpoints
    if not around.internet and not private:
        lacking = ", ".join(name for name in ENDPOINTS if name not in around.endpoints)
        found.append(f"its subnet has no default route, and its VPC no endpoint for {lacking}")
    if around.internet.startswith("igw-") and not instance.public and not private:
        found.append("its route is an internet gateway, which needs a public address; it has none")
    if around.checks == "impaired":
        found.append("it fails EC2's status checks: look at its console output")
    if found:
        return found
    if agent is None:
        return [
            "profile and route look right, so the role may lack AmazonSSMManagedInstanceCore, "
            "the security group may not let 443 out, or the agent did not start"
        ]
    return [
        f"its agent was there and is {agent.ping}: it was restarted, or the host is out of memory"
    ]


def surroundings(aws: Aws, instance: Instance) -> Surroundings:
    """Ask EC2 what the agent of this instance depends on."""
    return Surroundings(
        internet=_default_route(_route_tables(aws, instance.vpc), instance.subnet),
        endpoints=_endpoints(aws, instance.vpc),
        checks=_checks(aws, instance.id),
    )


def _route_tables(aws: Aws, vpc: str) -> "list[RouteTableTypeDef]":
    with aws.asking(f"look at the routes of {vpc}"):
        pages = aws.ec2.get_paginator("describe_route_tables").paginate(
            Filters=[{"Name": "vpc-id", "Values": [vpc]}]
        )
        return [table for page in pages for table in page["RouteTables"]]


def _default_route(tables: "Collection[RouteTableTypeDef]", subnet: str) -> str:
    """Return the target of the subnet's default route: of its own table, else the main one."""
    own = [table for table in tables if _belongs(table, subnet)]
    main = [table for table in tables if any(a.get("Main") for a in table.get("Associations", []))]
    for table in (own or main)[:1]:
        for route in table.get("Routes", []):
            if route.get("DestinationCidrBlock") == "0.0.0.0/0" and route.get("State") == "active":
                targets = (route.get("GatewayId"), route.get("NatGatewayId"))
                others = (route.get("TransitGatewayId"), route.get("NetworkInterfaceId"))
                return next((target for target in targets + others if target), "another route")
    return ""


def _belongs(table: "RouteTableTypeDef", subnet: str) -> bool:
    return any(entry.get("SubnetId") == subnet for entry in table.get("Associations", []))


def _endpoints(aws: Aws, vpc: str) -> frozenset[str]:
    with aws.asking(f"look at the endpoints of {vpc}"):
        pages = aws.ec2.get_paginator("describe_vpc_endpoints").paginate(
            Filters=[{"Name": "vpc-id", "Values": [vpc]}]
        )
        services = [raw.get("ServiceName", "") for page in pages for raw in page["VpcEndpoints"]]
    return frozenset(service.rpartition(".")[2] for service in services)


def _checks(aws: Aws, id: str) -> str:
    with aws.asking(f"look at the status checks of {id}"):
        answer = aws.ec2.describe_instance_status(InstanceIds=[id])
    statuses = answer["InstanceStatuses"]
    return statuses[0].get("InstanceStatus", {}).get("Status", "") if statuses else ""
