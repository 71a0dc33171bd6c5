"""inventory.py against a cloud on loopback."""

import json
import logging
import runpy
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyinfra.api.exceptions import PyinfraError

from facts.aws import Aws
from pyinfra_ssm.emulator.embedded import Emulator
from pyinfra_ssm.emulator.instances import Instance
from tests.ec2.cloud import Cloud, Fault
from tests.ec2.provisioning import launch

ROOT = Path(__file__).parents[2]


def run_inventory(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the file as pyinfra's own command does."""
    command = [sys.executable, "-m", "pyinfra", "inventory.py", "debug-inventory", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def groups() -> dict[str, dict[str, dict[str, str]]]:
    """Run the file alone; return group -> host name -> its data."""
    made = runpy.run_path(str(ROOT / "inventory.py"))
    return {
        key: dict(value)
        for key, value in made.items()
        if isinstance(value, list) and not key.startswith("_")
    }


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What pyinfra's logger is told."""
    caplog.set_level(logging.INFO, logger="pyinfra")
    return caplog


def test_hosts_are_grouped_and_the_rest_is_skipped_with_a_reason(
    aws: Aws, cloud: Cloud, said: pytest.LogCaptureFixture
) -> None:
    (arm,) = launch(aws)
    (x86,) = launch(aws, InstanceType="g4dn.xlarge", tags={"Name": "two"})
    (stopped,) = launch(aws)
    (silent,) = launch(aws)
    (strange,) = launch(aws, tags={"ManagedBy": "somebody else"})
    aws.ec2.stop_instances(InstanceIds=[stopped])
    cloud.pings[silent] = "ConnectionLost"

    found = groups()

    assert {name: list(hosts) for name, hosts in found.items()} == {
        "g5g": [f"@ssm/{arm}"],
        "g4dn": [f"@ssm/{x86}"],
        "one": [f"@ssm/{arm}"],
        "two": [f"@ssm/{x86}"],
    }
    assert found["g5g"][f"@ssm/{arm}"]["ssm_region"] == "us-east-1"
    assert f"skipped {stopped} (one): stopped" in said.text
    assert f"skipped {silent} (one): its agent is ConnectionLost, not Online" in said.text
    assert strange not in said.text


def test_a_spot_instance_taken_back_is_skipped_with_ec2s_reason(
    aws: Aws, cloud: Cloud, said: pytest.LogCaptureFixture
) -> None:
    launch(aws)
    (taken,) = launch(aws, InstanceMarketOptions={"MarketType": "spot"})
    words = "Server.SpotInstanceTermination: Spot instance termination"
    cloud.end(taken, "shutting-down", "Server.SpotInstanceTermination", words)

    groups()

    assert f"skipped {taken} (one): shutting-down: {words}" in said.text


def test_120_instances_are_found_over_several_pages(aws: Aws, cloud: Cloud) -> None:
    for _ in range(120):  # one by one: moto pages by reservation, EC2 by instance
        launch(aws)
    cloud.calls.clear()

    assert len(groups()["g5g"]) == 120
    assert cloud.actions().count("DescribeInstances") == 2
    assert cloud.actions().count("DescribeInstanceInformation") == 3


def test_an_empty_account_says_how_to_make_an_instance(cloud: Cloud) -> None:
    with pytest.raises(PyinfraError, match=r"\[us-east-1\].*pyinfra @local provision\.py"):
        groups()


def test_no_host_online_names_each_reason(aws: Aws, cloud: Cloud) -> None:
    (silent,) = launch(aws)
    cloud.all_online = False

    with pytest.raises(PyinfraError, match=f"{silent} is unknown to Systems Manager"):
        groups()


def test_prices_that_may_not_be_read_are_a_warning(
    aws: Aws, cloud: Cloud, said: pytest.LogCaptureFixture
) -> None:
    launch(aws, InstanceMarketOptions={"MarketType": "spot"})
    cloud.faults.append(Fault("DescribeSpotPriceHistory", "UnauthorizedOperation", "No."))

    assert len(groups()["g5g"]) == 1
    assert "no costs: [us-east-1] cannot read the spot prices" in said.text
    assert "up 0 min, ? USD" in said.text


def test_what_a_running_instance_cost_is_listed(
    aws: Aws, cloud: Cloud, said: pytest.LogCaptureFixture
) -> None:
    cloud.on_demand_usd["g5g.2xlarge"] = 0.5
    (id,) = launch(aws)
    begin = datetime.now(UTC) - timedelta(hours=10, minutes=1)
    cloud.instance(id).launch_time = begin.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    groups()

    assert f"found {id}: one g5g.2xlarge on-demand us-east-1a, up 10 h 1 min, 5.01 USD" in said.text


def test_a_throttled_call_is_repeated(aws: Aws, cloud: Cloud) -> None:
    launch(aws)
    cloud.faults.append(Fault("DescribeInstances", "RequestLimitExceeded", "Slow", times=5))

    assert len(groups()["g5g"]) == 1


def test_throttling_without_end_is_one_line(cloud: Cloud) -> None:
    cloud.faults.append(Fault("DescribeInstances", "RequestLimitExceeded", "Slow"))

    with pytest.raises(PyinfraError, match=r"RequestLimitExceeded: Slow\. .* wait a minute"):
        groups()
    assert cloud.actions() == ["DescribeInstances"] * 6


def test_the_command_groups_the_hosts_for_the_connector(aws: Aws, cloud: Cloud) -> None:
    (arm,) = launch(aws)

    ran = run_inventory("--json")

    assert ran.returncode == 0, ran.stderr
    (host,) = json.loads(ran.stdout)  # the listing goes to standard error alone
    assert host["name"] == f"@ssm/{arm}"
    assert {"g5g", "one"} <= set(host["groups"])


def test_a_command_runs_on_what_was_found(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Instance(tags={"ManagedBy": "vllm-g5g", "Name": "one"})
    command = [sys.executable, "-m", "pyinfra", "inventory.py", "exec", "--", "echo $((6 * 7))"]
    with Emulator(instances=[ours]) as emulator:
        monkeypatch.setenv("AWS_ENDPOINT_URL", emulator.endpoint_url)
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert f"[@ssm/{ours.instance_id}] 42" in ran.stdout + ran.stderr


FAULTS = {
    "denied": ("UnauthorizedOperation", ["Allow DescribeInstances", "docs/iam/operator.json"]),
    "expired": ("ExpiredToken", ["Renew the credentials"]),
    "clock": ("RequestExpired", ["Renew the credentials", "clock"]),
}


@pytest.mark.parametrize(("code", "words"), FAULTS.values(), ids=FAULTS)
def test_the_command_shows_a_fault_on_one_line(cloud: Cloud, code: str, words: list[str]) -> None:
    cloud.faults.append(Fault("DescribeInstances", code, "As told"))

    assert_one_line(run_inventory(), [f"{code}: As told.", *words])


def test_the_command_without_credentials_says_where_to_put_them(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    assert_one_line(run_inventory(), ["NoCredentialsError", "Set AWS_PROFILE"])


def test_the_command_without_a_region_says_where_to_put_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")

    assert_one_line(run_inventory(), ["NoRegionError", "Set AWS_DEFAULT_REGION"])


def test_the_command_with_a_profile_that_does_not_exist_says_so(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")

    assert_one_line(run_inventory(), ["ProfileNotFound", "nobody", "Set AWS_PROFILE"])


def test_without_a_network_it_says_so(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    with pytest.raises(PyinfraError, match=r"EndpointConnectionError: .* this machine's network"):
        groups()


def test_a_name_that_is_a_group_of_hardware_makes_no_group(aws: Aws, cloud: Cloud) -> None:
    (odd,) = launch(aws, InstanceType="c7g.large", tags={"Name": "g5g"})
    (unnamed,) = launch(aws, InstanceType="c7g.large", tags={"Name": ""})

    assert {name: sorted(hosts) for name, hosts in groups().items()} == {
        "cpu": sorted([f"@ssm/{odd}", f"@ssm/{unnamed}"])
    }


def assert_one_line(ran: subprocess.CompletedProcess[str], words: list[str]) -> None:
    (line,) = [line for line in ran.stderr.splitlines() if "pyinfra error" in line]
    assert ran.returncode == 1
    assert [word for word in words if word not in line] == []
    assert "Traceback" not in ran.stderr
