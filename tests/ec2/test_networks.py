"""Subnets, security groups and instance profiles, as EC2 tells them."""

from facts.aws import Aws
from facts.ec2_network import groups, judge_groups, judge_profile, places
from tests.ec2.cloud import Cloud


def test_places_are_the_subnets_given_or_the_default_ones(aws: Aws, cloud: Cloud) -> None:
    default = places(aws, subnets=(), zones=())
    assert len({place.zone for place in default}) == len(default) >= 4
    assert places(aws, subnets=(), zones=["us-east-1b"]) == [
        place for place in default if place.zone == "us-east-1b"
    ]
    assert places(aws, subnets=[default[2].subnet], zones=()) == [default[2]]
    assert places(aws, subnets=["subnet-0123456789abcdef0"], zones=()) == []


def test_an_open_security_group_is_a_warning(aws: Aws, cloud: Cloud) -> None:
    (vpc,) = aws.ec2.describe_vpcs()["Vpcs"]
    made = aws.ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc["VpcId"])
    id = made["GroupId"]
    assert judge_groups(groups(aws, [id]), [id], {vpc["VpcId"]}).warnings == ()

    aws.ec2.authorize_security_group_ingress(
        GroupId=id, IpProtocol="tcp", FromPort=22, ToPort=22, CidrIp="0.0.0.0/0"
    )
    judged = judge_groups(groups(aws, [id]), [id], {vpc["VpcId"]})
    assert judged.faults == ()
    assert judged.warnings == (
        f"the security group {id} lets the whole internet in; no port is needed",
    )


def test_a_profile_without_a_role_is_a_fault(aws: Aws, cloud: Cloud) -> None:
    (fault,) = judge_profile(aws, "p").faults
    assert fault.startswith("there is no instance profile p")
    aws.iam.create_instance_profile(InstanceProfileName="p")
    assert judge_profile(aws, "p").faults == (
        "the instance profile p has no role: docs/iam/ has one",
    )
