from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

from pyinfra_ssm.emulator import DEFAULT_ID, Emulator
from tests.ssm.emulator.client import service

STOPPED = "i-0000000000000000a"


def test_an_unknown_or_stopped_target_is_not_connected(shared: Emulator) -> None:
    ssm = service(shared, "ssm")
    for target in ("i-ffffffffffffffff0", STOPPED):
        with pytest.raises(ssm.exceptions.TargetNotConnected, match=f"{target} is not connected"):
            ssm.start_session(Target=target)
        assert ssm.get_connection_status(Target=target)["Status"] == "notconnected"
    assert ssm.get_connection_status(Target=DEFAULT_ID)["Status"] == "connected"


def test_documents_and_their_parameters_are_checked(shared: Emulator) -> None:
    ssm = service(shared, "ssm")
    with pytest.raises(ssm.exceptions.InvalidDocument):
        ssm.start_session(Target=DEFAULT_ID, DocumentName="AWS-StartNothing")
    interactive = "AWS-StartInteractiveCommand"
    with pytest.raises(ClientError, match="parameter not given: command"):
        ssm.start_session(Target=DEFAULT_ID, DocumentName=interactive)
    with pytest.raises(ClientError, match="no such parameter: comand"):
        ssm.start_session(Target=DEFAULT_ID, DocumentName=interactive, Parameters={"comand": ["x"]})


def test_a_denied_action_is_denied_and_the_others_are_not(start: Callable[..., Emulator]) -> None:
    ssm = service(start(denied=["StartSession"]), "ssm")
    with pytest.raises(ClientError) as denied:
        ssm.start_session(Target=DEFAULT_ID)
    assert denied.value.response["Error"]["Code"] == "AccessDeniedException"
    assert "ssm:StartSession" in denied.value.response["Error"]["Message"]
    assert ssm.get_connection_status(Target=DEFAULT_ID)["Status"] == "connected"


def test_one_document_alone_can_be_denied(start: Callable[..., Emulator]) -> None:
    ssm = service(start(denied=["StartSession:AWS-StartInteractiveCommand"]), "ssm")
    with pytest.raises(ClientError, match="AccessDeniedException"):
        ssm.start_session(
            Target=DEFAULT_ID,
            DocumentName="AWS-StartInteractiveCommand",
            Parameters={"command": ["sh"]},
        )
    assert ssm.start_session(Target=DEFAULT_ID)["TokenValue"]


def test_the_first_calls_are_throttled(start: Callable[..., Emulator]) -> None:
    ssm = service(start(throttle_first=2), "ssm")
    for _ in range(2):
        with pytest.raises(ClientError, match="ThrottlingException"):
            ssm.get_connection_status(Target=DEFAULT_ID)
    assert ssm.get_connection_status(Target=DEFAULT_ID)["Status"] == "connected"


def test_instance_information_is_filtered_and_paged(start: Callable[..., Emulator]) -> None:
    ssm = service(start(page_size=1), "ssm")
    pages = list(ssm.get_paginator("describe_instance_information").paginate())
    found = [row for page in pages for row in page["InstanceInformationList"]]
    assert len(pages) == 3
    assert {row["InstanceId"]: row["PingStatus"] for row in found}[STOPPED] == "ConnectionLost"
    filters = [{"Key": "tag:Role", "Values": ["build"]}]
    rows = ssm.describe_instance_information(Filters=filters)["InstanceInformationList"]
    assert [row["InstanceId"] for row in rows] == ["i-0000000000000000b"]


def test_an_instance_can_change_at_run_time(start: Callable[..., Emulator]) -> None:
    emulator = start()
    ssm = service(emulator, "ssm")
    emulator.set_instance(DEFAULT_ID, ping="ConnectionLost")
    assert ssm.get_connection_status(Target=DEFAULT_ID)["Status"] == "notconnected"
    emulator.set_instance(DEFAULT_ID, ping="Online")
    emulator.set_faults(not_connected=["*"])
    assert ssm.get_connection_status(Target=DEFAULT_ID)["Status"] == "notconnected"


def test_a_reset_takes_everything_back(start: Callable[..., Emulator]) -> None:
    emulator = start(denied=["SendCommand"])
    ssm = service(emulator, "ssm")
    emulator.set_instance(DEFAULT_ID, state="stopped")
    emulator.restart_agent("i-0000000000000000b", seconds=3600)
    ssm.get_connection_status(Target=DEFAULT_ID)
    emulator.reset(page_size=7)
    assert emulator.calls == emulator.sessions == []
    assert emulator.faults["denied"] == []
    assert emulator.faults["page_size"] == 7
    for target in (DEFAULT_ID, "i-0000000000000000b"):
        assert ssm.get_connection_status(Target=target)["Status"] == "connected"


def test_every_call_is_kept_with_its_parameters(start: Callable[..., Emulator]) -> None:
    emulator = start(denied=["SendCommand"])
    ssm = service(emulator, "ssm")
    parameters = {"commands": ["echo secret"]}
    with pytest.raises(ClientError):
        ssm.send_command(
            InstanceIds=[DEFAULT_ID], DocumentName="AWS-RunShellScript", Parameters=parameters
        )
    (call,) = emulator.calls
    assert call["action"] == "SendCommand"
    assert call["parameters"]["Parameters"] == parameters
