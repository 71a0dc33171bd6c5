"""The reading before a first start, on a real systemd: who reads, when, and what if it fails."""

import json
from typing import Any

from operations.prewarm import PROGRAM, UNIT, UNIT_PATH
from tests.container.stand_in import StandIn

FILES = "Ensure the server's unit and environment are current"
ON, OFF = "Ensure prewarming is on", "Ensure prewarming is off"
RECORD = "/var/lib/vllm-g5g/prewarm.json"
CHECKPOINT = "/var/lib/vllm-g5g/models/tiny"
SERVER = "vllm.service"
ANOTHER_ID = "0123456789abcdef0123456789abcdef"


def record(host: StandIn) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(host.run(f"cat {RECORD}"))
    return found


def of_unit(host: StandIn, unit: str, name: str) -> str:
    return host.run(f"systemctl show --property {name} --value {unit}")


def test_the_first_start_has_read_packages_and_checkpoint(host: StandIn) -> None:
    host.run(f"systemctl stop {SERVER} {UNIT} && rm -f {RECORD} && systemctl start {SERVER}")
    found = record(host)
    assert found["machine"] == host.run("cat /etc/machine-id")
    assert [path.rpartition("/")[2] for path in found["directories"]] == ["torch", "vllm", "tiny"]
    assert found["bytes"] == found["bytes_found"] > int(host.run(f"du -sb {CHECKPOINT} | cut -f1"))
    assert (found["unread"], found["unread_count"]) == ({}, 0)


def test_it_is_taken_away_and_comes_back_beside_a_server_that_goes_on(host: StandIn) -> None:
    assert host.converge().code == 0
    serving = of_unit(host, SERVER, "InvocationID")
    foretold, off = host.plan(prewarm=False), host.converge(prewarm=False)
    assert off.code == 0, off.log[-4000:]
    assert foretold.planned == off.changed == (FILES, OFF)
    assert host.run(f"find /etc/systemd/system {PROGRAM} -name '*prewarm*' 2>/dev/null; true") == ""
    assert of_unit(host, UNIT, "LoadState") == "not-found"
    assert host.plan(prewarm=False).clean
    on = host.converge()
    assert on.changed == (FILES, ON), on.log[-4000:]
    assert host.run(f"test -e {UNIT_PATH} && systemctl is-enabled {UNIT}") == "enabled"
    assert of_unit(host, SERVER, "InvocationID") == serving
    assert host.plan().clean


def test_a_machine_with_another_id_reads_again_before_its_server_starts(host: StandIn) -> None:
    host.run(f"echo {ANOTHER_ID} >/etc/machine-id")
    host.host.restart()
    assert record(host)["machine"] == ANOTHER_ID
    read = of_unit(host, UNIT, "ActiveEnterTimestampMonotonic")
    started = of_unit(host, SERVER, "InactiveExitTimestampMonotonic")
    assert 0 < int(read) <= int(started)
    assert host.converge().code == 0


def test_a_reading_that_fails_keeps_no_server_from_starting(host: StandIn) -> None:
    host.run(f"systemctl stop {SERVER} {UNIT} && rm {RECORD} && mkdir {RECORD}.new")
    try:
        host.run(f"systemctl start {SERVER}")
        states = [of_unit(host, unit, "ActiveState") for unit in (UNIT, SERVER)]
        assert states == ["failed", "active"]
    finally:
        host.run(f"rmdir {RECORD}.new && systemctl restart {UNIT}")
        mended = host.converge()
    assert mended.code == 0, mended.log[-4000:]
    assert host.plan().clean
