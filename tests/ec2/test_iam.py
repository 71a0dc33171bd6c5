"""docs/iam/ against the calls of the code: recorded where there is a cloud, read where not."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from facts.aws import Aws, AwsError
from facts.ec2_image import baked_images
from operations.bake import Source, image_plan
from operations.ec2_wait import until_online
from tests.ec2.authorization import arn, needs
from tests.ec2.cloud import REGION, Call, Cloud
from tests.ec2.hand import Hand
from tests.ec2.policy import Need, allows, many, statements
from tests.ec2.provisioning import KNOBS, ROOT, Provisioner, carry, furnish

pytestmark = pytest.mark.iam

OURS = {"aws:ResourceTag/ManagedBy": "vllm-g5g", "ssm:resourceTag/ManagedBy": "vllm-g5g"}


# --- all calls of this project, through its whole life


@dataclass
class Record:
    """Everything that AWS was asked from a fleet's first run to its end, and what that needed."""

    calls: list[Call] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)


@pytest.fixture(scope="module")
def shelf() -> Record:
    return Record()


@pytest.fixture
def record(
    shelf: Record, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> Record:
    """The record, made by the first test that wants it."""
    if not shelf.calls:
        cloud: Cloud = request.getfixturevalue("cloud")
        _live(request.getfixturevalue("aws"), cloud, Provisioner(caplog))
        shelf.calls = list(cloud.calls)
        shelf.needs = [need for call in shelf.calls for need in needs(call, cloud)]
        shelf.needs += [need for entries in CONNECTOR.values() for need in entries]
    return shelf


def _live(aws: Aws, cloud: Cloud, provision: Provisioner) -> None:
    furnish(aws, cloud)
    group = _security_group(aws)
    cloud.calls.clear()
    provision(dry=True)
    provision(market="spot", security_groups=group)
    provision(state="absent")
    provision(market="on-demand", security_groups=group)
    provision(market="on-demand", state="stopped")
    provision(market="on-demand")
    (id,) = cloud.states()["running"]
    _diagnose(aws, cloud, id)
    hand = Hand()
    assert carry(
        image_plan(aws, Source(id, "0" * 64, "1"), baked_images(aws), hand.clock), hand.said
    )


def _security_group(aws: Aws) -> str:
    (vpc,) = aws.ec2.describe_vpcs()["Vpcs"]
    made = aws.ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc["VpcId"])
    return made["GroupId"]


def _diagnose(aws: Aws, cloud: Cloud, id: str) -> None:
    hand = Hand()
    cloud.pings[id] = "ConnectionLost"
    with pytest.raises(AwsError, match="cannot reach instances"):
        until_online(aws, [id], 60, hand.clock, hand.said.append)


# --- the connector's calls and the token's, which other tests make: read from the source

SESSION = {"aws:userid": "AROAEXAMPLE:ops"}
CONNECTOR: Mapping[str, list[Need]] = {
    "describe_instance_information": [Need("ssm:DescribeInstanceInformation")],
    "describe_instances": [Need("ec2:DescribeInstances")],
    "generate_data_key": [
        Need(
            "kms:GenerateDataKey",
            arn("kms", "key/0"),
            {"kms:EncryptionContext:aws:ssm:SessionId": "ops-0"},
        )
    ],
    "get_command_invocation": [Need("ssm:GetCommandInvocation")],
    "resume_session": [Need("ssm:ResumeSession", arn("ssm", "session/AROAEXAMPLE:ops-0"), SESSION)],
    "send_command": [
        Need("ssm:SendCommand", arn("ec2", "instance/i-0"), OURS),
        Need("ssm:SendCommand", arn("ssm", "document/AWS-RunShellScript", account="")),
    ],
    "start_session": [
        Need("ssm:StartSession", arn("ec2", "instance/i-0"), OURS),
        Need("ssm:StartSession", arn("ssm", "document/AWS-StartInteractiveCommand", account="")),
        Need("ssm:StartSession", arn("ssm", "document/AWS-StartNonInteractiveCommand", account="")),
        # Not a call of the API: opening the websocket that StartSession names.
        Need("ssmmessages:OpenDataChannel", arn("ssm", "session/AROAEXAMPLE:ops-0"), SESSION),
    ],
    "terminate_session": [
        Need("ssm:TerminateSession", arn("ssm", "session/AROAEXAMPLE:ops-0"), SESSION)
    ],
}


def operation_names(*services: str) -> set[str]:
    """Return the methods of boto3's clients that are calls of these services."""
    session: Any = boto3.session.Session(region_name=REGION)
    clients = [session.client(service) for service in services]
    return {name for client in clients for name in client.meta.method_to_api_mapping}


def strings(path: Path) -> set[str]:
    """Return the strings of a source: paginators are asked for by name."""
    tree = ast.walk(ast.parse(path.read_text()))
    return {n.value for n in tree if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def methods(path: Path) -> set[str]:
    """Return the names that a source calls as methods."""
    tree = ast.walk(ast.parse(path.read_text()))
    calls = [node.func for node in tree if isinstance(node, ast.Call)]
    return {func.attr for func in calls if isinstance(func, ast.Attribute)}


def snake(action: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", action).lower()


def test_every_call_in_the_source_is_among_the_recorded_ones(record: Record) -> None:
    sources = [ROOT / folder for folder in (".", "facts", "operations")]
    named = set[str]().union(
        *(strings(path) | methods(path) for folder in sources for path in folder.glob("*.py"))
    )
    known = operation_names("ec2", "ssm", "iam", "pricing", "service-quotas")
    assert named & known == {snake(call.action) for call in record.calls}


def test_every_call_of_the_connector_is_in_the_table() -> None:
    # It has one method for all calls, which takes the name of each as a string.
    named = set[str]().union(*map(strings, (ROOT / "pyinfra_ssm").glob("*.py")))
    assert named & operation_names("ec2", "ssm", "kms") == CONNECTOR.keys()


def test_the_operator_may_make_every_call(record: Record) -> None:
    policy = statements("operator.json")
    refused = [
        need for need in record.needs if not any(allows(statement, need) for statement in policy)
    ]
    assert refused == []


def test_the_operator_may_do_nothing_that_is_not_needed(record: Record) -> None:
    for statement in statements("operator.json"):
        for action in many(statement["Action"]):
            for resource in many(statement["Resource"]):
                alone = statement | {"Action": action, "Resource": resource}
                used = any(allows(alone, need) for need in record.needs)
                # One's own sessions are spelled in two ways, for users and for roles.
                assert used or "${aws:username}" in resource, (
                    f"{statement['Sid']}: nothing needs {action} on {resource}"
                )


DENIED = {
    "an instance of somebody else": Need(
        "ec2:TerminateInstances",
        arn("ec2", "instance/i-0"),
        {"aws:ResourceTag/ManagedBy": "somebody"},
    ),
    "an instance without tags": Need("ec2:StopInstances", arn("ec2", "instance/i-0")),
    "a launch without our tag": Need("ec2:RunInstances", arn("ec2", "instance/*")),
    "a tag on what exists": Need("ec2:CreateTags", arn("ec2", "instance/i-0")),
    "another role": Need(
        "iam:PassRole",
        arn("iam", "role/admin", region=""),
        {"iam:PassedToService": "ec2.amazonaws.com"},
    ),
    "our role for another service": Need(
        "iam:PassRole",
        arn("iam", "role/vllm-g5g", region=""),
        {"iam:PassedToService": "lambda.amazonaws.com"},
    ),
    "a session on another host": Need("ssm:StartSession", arn("ec2", "instance/i-0")),
    "somebody else's session": Need(
        "ssm:TerminateSession", arn("ssm", "session/AROAOTHER:ops-0"), SESSION
    ),
    "a key outside of a session": Need("kms:GenerateDataKey", arn("kms", "key/0")),
}


@pytest.mark.parametrize("need", DENIED.values(), ids=DENIED)
def test_the_operator_may_not(need: Need) -> None:
    assert not any(allows(statement, need) for statement in statements("operator.json"))


def test_the_instance_may_read_the_one_secret_and_nothing_else() -> None:
    source = (ROOT / "files" / "token" / "fetch_token.py").read_text()
    (statement,) = statements("instance.json")
    assert set(re.findall(r"\.(Get[A-Za-z]+)", source)) == {"GetSecretValue"}
    secret = arn("secretsmanager", "secret:vllm-g5g/hf-token-AbCdEf")
    assert many(statement["Action"]) == ["secretsmanager:GetSecretValue"]
    assert allows(statement, Need("secretsmanager:GetSecretValue", secret))
    assert not allows(statement, Need("secretsmanager:GetSecretValue", secret.replace("hf", "db")))


def test_only_ec2_may_assume_the_role_of_an_instance() -> None:
    (statement,) = statements("instance-trust.json")
    assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert statement["Action"] == "sts:AssumeRole"


def test_the_profile_of_the_knobs_is_the_one_in_the_policies() -> None:
    text = (ROOT / "docs" / "iam" / "operator.json").read_text()
    assert f"role/{KNOBS['instance_profile']}" in text
