"""provision.py through pyinfra's engine, in this process: pyinfra's command would patch threads."""

import logging
import runpy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import Config, Inventory, State
from pyinfra.api.command import FunctionCommand
from pyinfra.api.connect import connect_all
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.operations import run_ops
from pyinfra.context import ctx_host, ctx_inventory, ctx_state

from facts.aws import Aws
from operations.steps import Step
from tests.ec2.cloud import Cloud

ROOT = Path(__file__).parents[2]
KNOBS = runpy.run_path(str(ROOT / "group_data" / "@local.py"))
PARAMETER = str(KNOBS["image_parameter"]).format(architecture="arm64")
DLAMI = "Deep Learning ARM64 AMI OSS Nvidia Driver GPU PyTorch 2.12 (Ubuntu 24.04) 20261101"


@dataclass(frozen=True)
class Outcome:
    """What a run of provision.py came to."""

    planned: bool  # the dry run names a change
    changed: bool  # the run made one
    failed: bool
    said: str  # all that was logged, and the error if there was one


@dataclass
class Provisioner:
    """Runs provision.py as often as a test wants."""

    log: pytest.LogCaptureFixture

    def __call__(self, *, dry: bool = False, yes: bool = True, **data: Any) -> Outcome:
        """Run it with `--data`, and with `--dry` or `-y` (as pyinfra has them)."""
        self.log.clear()
        state = State(check_for_changes=dry or not yes)
        inventory = _inventory(data)
        state.init(inventory, Config())
        changed = failed = False
        with ctx_state.use(state), ctx_inventory.use(inventory):
            try:
                _prepare(state, inventory)
                if not dry:
                    run_ops(state)
            except PyinfraError as error:
                failed = True
                self.log.handler.emit(_record(str(error)))
        (host,) = inventory
        metas = [op.operation_meta for op in state.ops[host].values()]
        changed = any(meta.is_complete() and meta.did_change() for meta in metas)
        planned = any(meta._maybe_is_change is True for meta in metas)
        return Outcome(planned, changed, failed or bool(state.failed_hosts), self.log.text)


def _inventory(data: dict[str, Any]) -> Inventory:
    knobs = {key: value for key, value in KNOBS.items() if not key.startswith("__")}
    return Inventory((["@local"], {}), override_data=data, **{"@local": ([], knobs)})


def _prepare(state: State, inventory: Inventory) -> None:
    connect_all(state)
    (host,) = inventory
    with ctx_host.use(host):
        runpy.run_path(str(ROOT / "provision.py"))


def _record(message: str) -> logging.LogRecord:
    return logging.LogRecord("pyinfra", logging.ERROR, "", 0, message, None, None)


def furnish(aws: Aws, cloud: Cloud) -> str:
    """Give the account what a launch needs: quotas, profile, image; return the image's id."""
    cloud.quotas |= {"L-DB2E81BA": 64, "L-3819A6DF": 64}
    aws.iam.create_role(RoleName="vllm-g5g", AssumeRolePolicyDocument="{}")
    aws.iam.create_instance_profile(InstanceProfileName="vllm-g5g")
    aws.iam.add_role_to_instance_profile(InstanceProfileName="vllm-g5g", RoleName="vllm-g5g")
    image = cloud.register_image(DLAMI)
    cloud.put_parameter(PARAMETER, image)
    cloud.calls.clear()
    return image


def launch(aws: Aws, **changes: Any) -> list[str]:
    """Launch instances of ours behind the code's back; returns their ids."""
    tags = {"ManagedBy": "vllm-g5g", "Name": "one"} | changes.pop("tags", {})
    asked: dict[str, Any] = {
        "ImageId": "ami-0123456789abcdef0",  # moto takes any
        "InstanceType": "g5g.2xlarge",
        "MinCount": 1,
        "MaxCount": 1,
        "TagSpecifications": [
            {
                "ResourceType": "instance",
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
        ],
    }
    answer = aws.ec2.run_instances(**asked | changes)
    return [entry["InstanceId"] for entry in answer["Instances"]]


def bake(aws: Aws, cloud: Cloud, build: str, architecture: str = "arm64") -> str:
    """Make an image of our own, as bake.py does; return its id."""
    id = cloud.register_image(f"vllm-g5g-{build}", architecture, owner="")
    tags = [{"Key": "ManagedBy", "Value": "vllm-g5g"}, {"Key": "Build", "Value": build}]
    aws.ec2.create_tags(Resources=[id], Tags=tags)  # type: ignore[arg-type]
    return id


@dataclass
class Listener:
    """As much of pyinfra's host as a command of ours talks to."""

    said: list[str]

    def log(self, message: str) -> None:
        self.said.append(message)

    def log_styled(self, message: str, **style: Any) -> None:
        self.said.append(message)


def carry(plan: Sequence[Step], said: list[str]) -> bool:
    """Carry out steps of AWS's as pyinfra does; return whether all succeeded."""
    commands = [step.command for step in plan]
    assert all(isinstance(command, FunctionCommand) for command in commands)
    host: Any = Listener(said)
    return all(command.execute(None, host, {}) for command in commands)  # type: ignore[arg-type]
