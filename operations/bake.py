"""A machine image of a host that was built and has proved that it serves."""

import hashlib
import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from pyinfra import host
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.exceptions import DeployError

from desired.fleet import MANAGED_BY
from facts.aws import Aws, AwsError
from facts.bake import Seal, SealState, seal_program
from facts.build import FoundBuild, Stamp
from facts.ec2 import Instance, by_id
from facts.ec2_image import BUILD, Image, baked_images
from facts.smoke import SmokeState
from facts.units import FoundUnit, Units
from operations.aws_command import Say, aws_command
from operations.build import Build, Places
from operations.build import plan as build_plan
from operations.ec2_wait import CLOCK, Clock, poll
from operations.filesystem import File
from operations.smoke import Check
from operations.smoke import plan as smoke_plan
from operations.steps import Refusal, Step, carry_out

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import ResourceTypeType
    from mypy_boto3_ec2.type_defs import TagSpecificationTypeDef, TagTypeDef

# The first snapshot of a volume copies all of it: 150 GiB may take most of an hour [untested].
AVAILABLE_WITHIN_S = 7200.0
GOOD = frozenset({"available", "pending"})  # states of an image that is there, or will be


@dataclass(frozen=True)
class Proof:
    """What a host has to be, to be worth an image."""

    build: Build
    places: Places
    check: Check
    texts: Mapping[str, str]  # of the unit and its environment, by path
    programs: str  # directory of the measuring programs


def build_digest(stamp: Stamp) -> str:
    """Return the digest of all that went into a build: the tag Build of its images."""
    return hashlib.sha256(json.dumps(stamp["inputs"], sort_keys=True).encode()).hexdigest()


def unproved(found: FoundBuild | None, tested: SmokeState, proof: Proof) -> list[str]:
    """Return why a host is not worth an image: what its deploy would still change."""
    plan = [
        *build_plan(found, proof.build, proof.places),
        *smoke_plan(tested, proof.check, proof.programs, "", texts=proof.texts),
    ]
    return [step.message if isinstance(step, Refusal) else step.reason for step in plan]


def proved_stamp(
    host_name: str, found: FoundBuild | None, tested: SmokeState, proof: Proof
) -> Stamp:
    """Return the stamp of a host that is worth an image.

    Raises DeployError, with everything that its deploy would still change; bake.py is for one
    host, so no other has to go on.
    """
    faults = unproved(found, tested, proof)
    if faults or found is None or found["stamp"] is None:
        raise DeployError(
            f"[{host_name}] cannot bake this host: {'; '.join(faults)}. "
            "Run `pyinfra inventory.py deploy.py` on it first."
        )
    return found["stamp"]


def info_file(path: str, digest: str, stamp: Stamp, tested: SmokeState, base: str) -> File:
    """Return the file that tells, on a host made from the image, what the image holds.

    `base` is the image that the baked host was launched from.
    """
    told = {"build": digest, "base_image": base, **stamp, "smoke": tested["record"]}
    return File(path, json.dumps(told, indent=2, sort_keys=True) + "\n")


@operation()
def sealed(service: str) -> Generator[PyinfraCommand, None, None]:
    """Stop the service, and take out what must not travel; fails if any of it is left.

    + service: unit that has to be stopped: it holds the token, and pages that go to swap
    """
    # Asked anew in each phase: what must not travel may have come since it was foretold.
    found = host.get_fact(Units, units=[service])[service]
    plan = seal_plan(host.get_fact(Seal), found, service)
    yield from carry_out(plan, settled="stopped, and nothing on it must stay behind")


def seal_plan(state: SealState, found: FoundUnit, service: str) -> list[Step | Refusal]:
    """Return the steps that make the host fit to be copied."""
    if state["tokens"]:
        where = ", ".join(state["tokens"])
        return [Refusal(f"these files hold what looks like a token: {where}. Take it out first.")]
    steps: list[Step | Refusal] = []
    if (activity := found["state"].get("ActiveState", "inactive")) != "inactive":
        reason = f"{service} is {activity}; stop it"
        steps.append(Step(reason, StringCommand("systemctl", "stop", service)))
    if state["left"] or steps:
        shown = ", ".join(state["left"][:5]) + (", ..." if len(state["left"]) > 5 else "")
        reason = f"{len(state['left'])} paths must not travel ({shown}), and swap is blanked"
        steps.append(Step(reason, seal_program("seal")))
    return steps


@dataclass(frozen=True)
class Source:
    """The instance to take an image of, and what to call it."""

    instance: str
    digest: str
    version: str  # of vLLM

    def name(self, now: datetime) -> str:
        """Return a name that no other image of the account has."""
        return f"{MANAGED_BY} vllm {self.version} {self.digest[:12]} {now:%Y-%m-%dT%H.%M.%SZ}"


@operation()
def image(
    aws: Aws, source: Source, images: Sequence[Image], clock: Clock = CLOCK
) -> Generator[PyinfraCommand, None, None]:
    """Have an image of the instance's build.

    EC2 restarts the instance for it, so that the file systems are whole.

    + images: our images of this very build, those that failed left out
    """
    plan = image_plan(aws, source, images, clock)
    yield from carry_out(plan, settled=f"{source.digest[:12]} is baked")


def image_plan(aws: Aws, source: Source, images: Sequence[Image], clock: Clock) -> list[Step]:
    """Return the steps to an available image of this build: none where there is one."""
    if any(entry.state == "available" for entry in images):
        return []
    if pending := [entry.id for entry in images if entry.state == "pending"]:
        waiting = partial(_until_available, aws, pending[0], clock)
        return [Step(f"{pending[0]} is being made; wait for it", aws_command("wait", waiting))]
    reason = f"no image of build {source.digest[:12]} yet; make one of {source.instance}"
    return [Step(reason, aws_command("bake", partial(_make, aws, source, clock)))]


def _make(aws: Aws, source: Source, clock: Clock, say: Say) -> None:
    name = source.name(datetime.now(UTC))
    with aws.asking(f"make an image of {source.instance}"):
        made = aws.ec2.create_image(
            InstanceId=source.instance, Name=name, TagSpecifications=_tags(source, name)
        )["ImageId"]
    say(f"{made} ({name}) is being made")
    _until_available(aws, made, clock, say)


def _tags(source: Source, name: str) -> "list[TagSpecificationTypeDef]":
    tags: list[TagTypeDef] = [
        {"Key": "ManagedBy", "Value": MANAGED_BY},
        {"Key": "Name", "Value": name},
        {"Key": BUILD, "Value": source.digest},
    ]
    kinds: list[ResourceTypeType] = ["image", "snapshot"]
    return [{"ResourceType": kind, "Tags": tags} for kind in kinds]


def _until_available(aws: Aws, id: str, clock: Clock, say: Say) -> None:
    def look() -> str:
        states = {entry.id: entry.state for entry in baked_images(aws)}
        state = states.get(id, "not listed yet")
        if state in {"failed", "error", "invalid", "deregistered"}:
            raise AwsError(
                f"[{aws.region}] the image {id} is {state}. EC2's console has the reason; "
                "deregister it, then run again."
            )
        return "" if state == "available" else f"{id} is {state}"

    if left := poll(look, AVAILABLE_WITHIN_S, clock, say):
        raise AwsError(
            f"[{aws.region}] {left} after {AVAILABLE_WITHIN_S:.0f} s. It goes on without us: "
            "run again to wait for it."
        )


def tell_images(images: Sequence[Image], digest: str) -> list[str]:
    """Return a line for each image of ours: those of this build, and those of others."""
    return [
        f"{entry.id} of {entry.created} is {entry.state}, "
        + ("of this build" if entry.build == digest else f"of build {entry.build[:12]}")
        for entry in images
    ]


def instance_of(aws: Aws, host_name: str) -> Instance:
    """Return the EC2 instance that a host of the inventory is; AwsError where it is none."""
    id = host_name.removeprefix("@ssm/")
    found = by_id(aws, [id]) if re.fullmatch(r"i-[0-9a-f]{8,17}", id) else {}
    if id not in found:
        raise AwsError(
            f"[{aws.region}] cannot bake {host_name}: it is no EC2 instance here. "
            "Name one of inventory.py with --limit."
        )
    return found[id]
