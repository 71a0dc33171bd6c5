"""provision.py through the life of a fleet, against a cloud on loopback."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from threading import Event
from typing import Any

from facts.aws import Aws
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.provisioning import ROOT, Provisioner, bake


def test_a_dry_run_names_the_launch_and_writes_nothing(
    provision: Provisioner, cloud: Cloud
) -> None:
    cloud.on_demand_usd["g5g.2xlarge"] = 0.556

    ran = provision(dry=True)

    assert ran.planned
    assert not ran.failed
    assert "0 of 1 instances are there as wanted; launch 1 g5g.2xlarge" in ran.said
    assert '"All G and VT Spot Instance Requests" (L-3819A6DF): 0 of 64 vCPUs' in ran.said
    assert "on spot, USD an hour: us-east-1a" in ran.said
    assert "on demand, USD an hour: 0.5560" in ran.said
    assert cloud.writes() == []


def test_the_second_run_changes_nothing(provision: Provisioner, cloud: Cloud) -> None:
    assert provision().changed
    assert len(cloud.states()["running"]) == 1

    assert not provision().changed
    assert not provision(dry=True).planned
    assert cloud.writes() == ["RunInstances"]


def pyinfra(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pyinfra", "@local", "provision.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_reads_the_knobs_and_its_second_run_changes_nothing(
    provision: Provisioner, cloud: Cloud
) -> None:
    words = ["--data", "zones=us-east-1c,us-east-1d", "--data", "market=on-demand"]

    first, second = pyinfra("-y", *words), pyinfra("--dry", "--json", *words)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert cloud.writes() == ["RunInstances"]
    (id,) = cloud.states()["running"]
    assert cloud.instance(id).placement.zone == "us-east-1c"
    assert f"{id} is launched" in first.stderr
    (operation,) = json.loads(second.stdout)["plan"]
    assert operation["name"] == "Ensure 1 g5g.2xlarge called vllm-g5g run and are reached"
    assert operation["hosts_with_change"] == []


def interrupted(until: Callable[["subprocess.Popen[str]"], object]) -> str:
    """Run provision.py as a user does, press Ctrl-C once `until` returns; return what it said."""
    command = [sys.executable, "-m", "pyinfra", "@local", "provision.py", "-y"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as running:
        try:
            until(running)
            running.send_signal(signal.SIGINT)
            _, told = running.communicate(timeout=120)
        finally:
            running.kill()  # where it does not end
    assert running.returncode == 1
    assert "Traceback" not in told
    return told


STOPPED = "stopped by Ctrl-C while AWS was asked to reach"


def test_ctrl_c_ends_the_wait_and_the_next_run_finds_the_instance(
    provision: Provisioner, cloud: Cloud
) -> None:
    def waits(running: "subprocess.Popen[str]") -> bool:
        assert running.stderr is not None
        return any(" s of " in line for line in running.stderr)

    cloud.all_online = False
    assert STOPPED in interrupted(waits)
    cloud.all_online = True
    assert not provision().changed
    assert cloud.writes() == ["RunInstances"]


def test_ctrl_c_ends_a_call_that_is_not_answered(provision: Provisioner, cloud: Cloud) -> None:
    answered = Event()
    action = "DescribeInstanceInformation"
    cloud.faults.append(Fault(action, "InternalError", when=lambda _: answered.wait(120)))
    told = interrupted(lambda running: cloud.asked[action].wait(120))
    answered.set()
    assert STOPPED in told


def test_the_instance_is_as_the_knobs_have_it(
    provision: Provisioner, cloud: Cloud, aws: Aws
) -> None:
    provision(market="on-demand", volume_gib=200)

    (reservation,) = aws.ec2.describe_instances()["Reservations"]
    (made,) = reservation["Instances"]
    tags = {"ManagedBy": "vllm-g5g", "Name": "vllm-g5g"}
    assert tags.items() <= {tag["Key"]: tag["Value"] for tag in made["Tags"]}.items()
    assert made["MetadataOptions"]["HttpTokens"] == "required"
    assert made["MetadataOptions"]["HttpPutResponseHopLimit"] == 1
    (volume,) = aws.ec2.describe_volumes()["Volumes"]
    assert (volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (200, "gp3", True)
    assert tags.items() <= {tag["Key"]: tag["Value"] for tag in volume["Tags"]}.items()


def test_a_stopped_instance_is_started_not_launched_again(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision(market="on-demand")
    assert provision(market="on-demand", state="stopped").changed
    assert not provision(market="on-demand", state="stopped").changed
    assert provision(market="on-demand").changed

    assert cloud.writes() == ["RunInstances", "StopInstances", "StartInstances"]
    assert not provision(market="on-demand").changed


def test_one_time_spot_is_refused_a_stop_before_trying(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision(market="spot")
    ran = provision(state="stopped")

    assert ran.failed
    assert "a one-time spot instance cannot be stopped, only terminated" in ran.said
    assert "StopInstances" not in cloud.actions()


def test_terminating_wants_the_name_or_yes(provision: Provisioner, cloud: Cloud) -> None:
    provision()
    for refused in [
        provision(yes=False, state="absent"),
        provision(yes=False, state="absent", confirm="another"),
    ]:
        assert refused.failed
        assert "with all that was built and downloaded on it" in refused.said
        assert "--data confirm=vllm-g5g" in refused.said
    assert "TerminateInstances" not in cloud.actions()

    assert provision(yes=False, state="absent", confirm="vllm-g5g").changed
    assert cloud.states().keys() == {"terminated"}
    assert not provision(state="absent").changed


def test_yes_alone_terminates_what_the_data_says_is_absent(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    assert provision(state="absent").changed
    assert cloud.states().keys() == {"terminated"}


def test_two_instances_of_one_name_are_refused_until_said_which_number(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision(count=2)
    oldest, youngest = cloud.states()["running"]
    cloud.instance(youngest).launch_time = "2099-01-01T00:00:00.000Z"

    ran = provision(count=1)
    assert ran.failed
    assert "2 instances are called vllm-g5g, count is 1" in ran.said
    assert len(cloud.states()["running"]) == 2

    assert provision(count=1, confirm="vllm-g5g").changed
    assert cloud.states() == {"running": [oldest], "terminated": [youngest]}


def test_a_spot_instance_that_was_taken_back_is_replaced(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision(market="spot")
    (taken,) = cloud.states()["running"]
    words = "Server.SpotInstanceTermination: Spot instance termination"
    cloud.end(taken, "terminated", "Server.SpotInstanceTermination", words)

    ran = provision(market="spot")

    assert ran.changed
    assert f"{taken} g5g.2xlarge spot is terminated {words}" in ran.said
    assert len(cloud.states()["running"]) == 1


def test_a_baked_image_is_launched_and_a_newer_one_is_told(
    provision: Provisioner, cloud: Cloud, aws: Aws
) -> None:
    old = bake(aws, cloud, "11111111")
    cloud.ec2.amis[old].creation_date = datetime(2026, 1, 1)
    assert provision(baked="latest").changed
    (call,) = [call for call in cloud.calls if call.action == "RunInstances"]
    assert call.params["ImageId"] == old

    bake(aws, cloud, "22222222")
    ran = provision(baked="latest")

    assert not ran.changed
    assert "image is build:11111111, wanted build:22222222" in ran.said
    assert not provision(baked="11111111").changed


def test_instances_of_others_are_never_touched(
    provision: Provisioner, cloud: Cloud, aws: Aws
) -> None:
    theirs = aws.ec2.run_instances(ImageId="ami-0123456789abcdef0", MinCount=1, MaxCount=1)[
        "Instances"
    ][0]["InstanceId"]
    named: Any = [{"Key": "Name", "Value": "vllm-g5g"}]  # our name, but not managed by us
    aws.ec2.create_tags(Resources=[theirs], Tags=named)
    provision()
    provision(state="absent")

    assert cloud.states()["running"] == [theirs]


def test_a_changed_type_is_told_and_left_alone_without_replace(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    ran = provision(type="g5g.xlarge", volume_gib=300)

    assert not ran.changed
    assert not ran.failed
    assert "type is g5g.2xlarge, wanted g5g.xlarge" in ran.said
    assert "volume_gib is 150, wanted 300" in ran.said
    assert "replace=true" in ran.said
    assert cloud.writes() == ["RunInstances"]


def test_replace_launches_the_new_one_before_it_terminates_the_old(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    (old,) = cloud.states()["running"]

    assert provision(type="g5g.xlarge", replace=True).changed

    assert cloud.writes() == ["RunInstances", "RunInstances", "TerminateInstances"]
    assert cloud.states()["terminated"] == [old]
    assert not provision(type="g5g.xlarge", replace=True).changed


def test_a_replacement_that_finds_no_room_leaves_the_old_one(
    provision: Provisioner, cloud: Cloud
) -> None:
    provision()
    cloud.faults.append(Fault("RunInstances", "InsufficientInstanceCapacity"))

    ran = provision(type="g5g.xlarge", replace=True, rounds=1)

    assert ran.failed
    assert "no zone has room" in ran.said
    assert cloud.states().keys() == {"running"}
