"""An instance, an image and surroundings as the knobs have them, to be changed by a test."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from desired.fleet import Fleet
from facts.ec2 import Instance
from facts.ec2_image import Image
from facts.ec2_network import Findings, Place
from facts.ec2_quota import Kind, Quota
from facts.ec2_survey import Survey
from tests.ec2.provisioning import KNOBS, PARAMETER

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
IMAGE = Image(
    id="ami-1",
    name="Deep Learning ARM64 AMI OSS Nvidia Driver GPU PyTorch 2.12 (Ubuntu 24.04) 20261101",
    description="",
    architecture="arm64",
    state="available",
    created="2026-11-01T00:00:00.000Z",
    root_device="/dev/sda1",
    root_gib=60,
    build="",
    source=PARAMETER,
)
PLACE = Place("subnet-a", "us-east-1a", "vpc-1", free=100)
SEEN = Survey(
    kind=Kind(vcpus=8, architecture="arm64"),
    image=IMAGE,
    places=(PLACE,),
    offering=frozenset({"us-east-1a"}),
    groups=(),
    profile=Findings(),
    quotas={"spot": Quota("spot", 64, 0), "on-demand": Quota("on-demand", 64, 0)},
    spot_usd={"us-east-1a": 0.3},
    fixed_usd=0.5,
    volumes={},
    online=frozenset(f"i-{n}" for n in range(100)),
    warnings=(),
)


def fleet(**knobs: Any) -> Fleet:
    return Fleet.from_data(KNOBS | knobs, knobs)


def instance(number: int, state: str = "running", **changes: Any) -> Instance:
    """Return an instance that is as the knobs have it; the higher the number the younger."""
    made = Instance(
        id=f"i-{number}",
        name="vllm-g5g",
        type="g5g.2xlarge",
        state=state,
        market="on-demand",
        launched=BEGIN + timedelta(hours=number),
        zone="us-east-1a",
        subnet="subnet-a",
        vpc="vpc-1",
        image="ami-1",
        architecture="arm64",
        profile="vllm-g5g",
        groups=frozenset(),
        public=True,
        root_volume=f"vol-{number}",
        reason="",
        source=PARAMETER,
    )
    return replace(made, **changes)
