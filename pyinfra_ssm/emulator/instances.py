"""The emulated fleet: what DescribeInstances says of each instance, and whether its agent is up."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

DEFAULT_ID = "i-0123456789abcdef0"


@dataclass
class Instance:
    """One managed instance. Without `container` it is this machine.

    `state` is EC2's name of a state, `ping` Systems Manager's PingStatus. `environment` is added
    to that of every command.
    """

    instance_id: str = DEFAULT_ID
    container: str | None = None
    engine: str = "podman"
    tags: Mapping[str, str] = field(default_factory=dict)
    instance_type: str = "g5g.xlarge"
    architecture: str = "arm64"
    image_id: str = "ami-0123456789abcdef0"
    availability_zone: str = "us-east-1a"
    private_ip: str = "10.0.0.10"
    state: str = "running"
    ping: str = "Online"
    environment: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Self:
        """Read an instance; ValueError for a member that there is not."""
        unknown = members.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise ValueError(f"an instance has no {', '.join(sorted(unknown))}")
        return cls(**members)
