"""What stands between the token script and a token, and what it says then."""

from typing import Any

import pytest

from files.token import fetch_token
from tests.secret.conftest import TOKEN, UNREACHABLE, refused
from tests.secret.metadata import failing_service
from tests.secret.secrets_manager import REGION


def test_an_instance_without_a_role(vault, host, capsys):
    host.metadata.role = None
    assert "this instance has no role. Attach an instance profile" in refused(host, capsys)


def test_a_role_that_cannot_be_assumed(vault, host, capsys):
    host.metadata.keys = {"Code": "AssumeRoleUnauthorizedAccess"}
    assert "no usable keys for role vllm-host" in refused(host, capsys)


def test_metadata_that_is_switched_off(vault, host, capsys):
    host.metadata.enabled = False
    assert "answered 403 to PUT. Set HttpEndpoint=enabled" in refused(host, capsys)


def test_no_metadata_service_at_all(vault, host, capsys, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", UNREACHABLE)
    assert 'Elsewhere: set hf_token_source = "none"' in refused(host, capsys)
    assert host.slept == [1, 2, 4, 8, 16]


def test_no_route_to_the_service(host, capsys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", UNREACHABLE)
    assert f"VPC endpoint com.amazonaws.{REGION}.secretsmanager" in refused(host, capsys)
    assert len(host.slept) == 5


def fault(kind: str, status: int = 400, **headers: str) -> Any:
    return status, {"__type": kind, "Message": "as the service says"}, headers


FAULTS = {
    "no permission": (
        fault("AccessDeniedException"),
        "role vllm-host may not read it. Allow it secretsmanager:GetSecretValue",
    ),
    "a key of its own": (fault("DecryptionFailure"), "Allow role vllm-host kms:Decrypt"),
    "expired keys": (fault("ExpiredTokenException"), "the role's keys have expired"),
    "keys of another partition": (fault("UnrecognizedClientException"), "Check the region"),
    "a name with its namespace": (
        fault("com.amazonaws.secretsmanager#ResourceNotFoundException"),
        "there is no such secret",
    ),
    "something new": (fault("TeapotException"), "TeapotException: as the service says"),
}


@pytest.mark.parametrize(("answer", "said"), FAULTS.values(), ids=FAULTS)
def test_each_fault_names_its_remedy_and_is_not_retried(host, capsys, monkeypatch, answer, said):
    with failing_service(answer) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", faults.url)
        assert said in refused(host, capsys)
    assert faults.asked == 1


def test_a_clock_that_is_wrong_is_named_with_how_wrong_it_is(host, capsys, monkeypatch):
    answer = fault("InvalidSignatureException", 400, Date="Mon, 30 Nov 2020 12:00:00 GMT")
    with failing_service(answer) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", faults.url)
        line = refused(host, capsys)
    assert "this clock is +" in line
    assert "timedatectl set-ntp true" in line


def test_a_throttled_fetch_is_tried_again(host, monkeypatch, capsys):
    answers = [fault("ThrottlingException"), fault("InternalServiceError", 500)]
    with failing_service(*answers, (200, {"SecretString": TOKEN}, {})) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", faults.url)
        assert host.fetch() == 0
    assert host.slept == [1, 2]
    assert "attempt 1 of 6" in capsys.readouterr().out


def test_throttling_without_end_is_given_up(host, capsys, monkeypatch):
    with failing_service(fault("ThrottlingException")) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", faults.url)
        assert "throttling or failing (ThrottlingException)" in refused(host, capsys)
    assert faults.asked == fetch_token.ATTEMPTS
