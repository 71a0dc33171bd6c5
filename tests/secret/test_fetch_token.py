"""The token script against a metadata service and moto's Secrets Manager, both on loopback."""

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from hypothesis import given
from hypothesis import strategies as st
from moto.server import ThreadedMotoServer

from files.token import fetch_token
from files.token.fetch_token import Credentials, FetchError, Secret, checked_token, signed_headers
from tests.secret.metadata import failing_service, metadata_service
from tests.secret.systemd_environment import parse

REGION = "us-west-2"
NAME = "hf/token"
TOKEN = "hf_Example0123456789"
UNREACHABLE = "http://127.0.0.1:9"  # discard; nobody listens there


@pytest.fixture(scope="module")
def secrets_manager() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def vault(secrets_manager, monkeypatch) -> Any:
    """An empty Secrets Manager, and its client."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    client = boto3.client("secretsmanager", region_name=REGION, endpoint_url=secrets_manager)
    for found in client.list_secrets(IncludePlannedDeletion=True)["SecretList"]:
        client.delete_secret(SecretId=found["ARN"], ForceDeleteWithoutRecovery=True)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets_manager)
    return client


@pytest.fixture
def host(tmp_path, monkeypatch) -> Iterator[SimpleNamespace]:
    """An instance with a role; `fetch` runs the script and returns its exit status."""
    output = tmp_path / "run" / "token.env"
    slept: list[float] = []

    def fetch(*more: str) -> int:
        words = ["--region", REGION, "--secret-id", NAME, "--output", str(output), *more]
        return fetch_token.main(words, slept.append)

    mask = os.umask(0o022)
    with metadata_service() as metadata:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
        yield SimpleNamespace(metadata=metadata, output=output, fetch=fetch, slept=slept)
    os.umask(mask)


def test_the_token_is_written_for_root_alone(vault, host, capsys):
    vault.create_secret(Name=NAME, SecretString=f"  {TOKEN}\r\n")
    assert host.fetch() == 0
    assert parse(host.output.read_text()) == {"HF_TOKEN": TOKEN}
    assert host.output.read_text().startswith(f"# secretsmanager {REGION} {NAME}\n")
    assert host.output.stat().st_mode & 0o777 == 0o600
    assert host.output.parent.stat().st_mode & 0o777 == 0o700
    assert list(host.output.parent.iterdir()) == [host.output]
    said = capsys.readouterr()
    assert TOKEN not in said.out + said.err


def test_the_script_runs_by_itself_with_the_standard_library_alone(vault, host):
    vault.create_secret(Name=NAME, SecretString=TOKEN)
    script = Path(fetch_token.__file__)
    words = ["--region", REGION, "--secret-id", NAME, "--output", str(host.output)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"wrote {host.output} from secret {NAME} in {REGION}\n"
    assert parse(host.output.read_text()) == {"HF_TOKEN": TOKEN}


def test_a_replaced_token_replaces_the_file(vault, host):
    vault.create_secret(Name=NAME, SecretString="old")
    assert host.fetch() == 0
    vault.put_secret_value(SecretId=NAME, SecretString="new")
    assert host.fetch() == 0
    assert parse(host.output.read_text()) == {"HF_TOKEN": "new"}


def _refused(host: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> str:
    """Fetch, which must fail; return the one line that says why."""
    assert host.fetch() == 1
    assert not host.output.exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("no token: ")
    return line


def test_a_secret_that_is_missing(vault, host, capsys):
    assert "there is no such secret. Check hf_token_secret" in _refused(host, capsys)


def test_a_binary_secret(vault, host, capsys):
    vault.create_secret(Name=NAME, SecretBinary=b"\x00\x01")
    assert "is binary. Store the token as its SecretString" in _refused(host, capsys)


def test_a_secret_that_is_marked_for_deletion(vault, host, capsys):
    vault.create_secret(Name=NAME, SecretString=TOKEN)
    vault.delete_secret(SecretId=NAME, RecoveryWindowInDays=7)
    assert "restore-secret" in _refused(host, capsys)


CONTENTS = {
    "blank": (" \n", "the secret is empty"),
    "two words": (f"Bearer {TOKEN}", "not one printable word"),
    "two lines": (f"{TOKEN}\n{TOKEN}", "not one printable word"),
    "json": (json.dumps({"HF_TOKEN": TOKEN}), "not one printable word"),
    "compact json": ('{"HF_TOKEN":"' + TOKEN + '"}', "looks like JSON"),
    "a letter that only looks right": ("hf_Ex\u0430mple", "not one printable word"),
}


@pytest.mark.parametrize(("content", "said"), CONTENTS.values(), ids=CONTENTS)
def test_what_is_no_token_is_refused_and_not_shown(vault, host, capsys, content, said):
    vault.create_secret(Name=NAME, SecretString=content)
    line = _refused(host, capsys)
    assert said in line
    assert TOKEN not in line


def test_an_instance_without_a_role(vault, host, capsys):
    host.metadata.role = None
    assert "this instance has no role. Attach an instance profile" in _refused(host, capsys)


def test_a_role_that_cannot_be_assumed(vault, host, capsys):
    host.metadata.keys = {"Code": "AssumeRoleUnauthorizedAccess"}
    assert "no usable keys for role vllm-host" in _refused(host, capsys)


def test_metadata_that_is_switched_off(vault, host, capsys):
    host.metadata.enabled = False
    assert "answered 403 to PUT. Set HttpEndpoint=enabled" in _refused(host, capsys)


def test_no_metadata_service_at_all(vault, host, capsys, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", UNREACHABLE)
    assert 'Elsewhere: set hf_token_source = "none"' in _refused(host, capsys)
    assert host.slept == [1, 2, 4, 8, 16]


def test_no_route_to_the_service(host, capsys, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", UNREACHABLE)
    assert f"VPC endpoint com.amazonaws.{REGION}.secretsmanager" in _refused(host, capsys)
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
        assert said in _refused(host, capsys)
    assert faults.asked == 1


def test_a_clock_that_is_wrong_is_named_with_how_wrong_it_is(host, capsys, monkeypatch):
    answer = fault("InvalidSignatureException", 400, Date="Mon, 30 Nov 2020 12:00:00 GMT")
    with failing_service(answer) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", faults.url)
        line = _refused(host, capsys)
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
        assert "throttling or failing (ThrottlingException)" in _refused(host, capsys)
    assert faults.asked == fetch_token.ATTEMPTS


@pytest.mark.parametrize(("words", "status"), [(["--keep-last"], 0), ([], 1)])
def test_the_last_good_token_is_kept_only_where_asked_for(vault, host, words, status):
    vault.create_secret(Name=NAME, SecretString=TOKEN)
    assert host.fetch() == 0
    vault.delete_secret(SecretId=NAME, ForceDeleteWithoutRecovery=True)
    assert host.fetch(*words) == status
    assert host.output.exists() is bool(words)


def test_the_first_token_cannot_be_kept_from_nowhere(vault, host):
    assert host.fetch("--keep-last") == 1


def test_the_signature_is_botocores():
    keys = Credentials("role", "ASIAEXAMPLE", "example/secret+key", "example//token==")
    body = json.dumps({"SecretId": NAME}).encode()
    now = datetime.datetime(2026, 11, 30, 12, 0, 0, tzinfo=datetime.UTC)
    secret = Secret(REGION, NAME)

    ours = signed_headers(secret, keys, body, now)

    signed = {name: value for name, value in ours.items() if name not in ("authorization", "host")}
    request = AWSRequest("POST", secret.endpoint + "/", data=body, headers=signed)
    request.context["timestamp"] = ours["x-amz-date"]
    botocore_keys = BotocoreCredentials(keys.access_key, keys.secret_key, keys.session_token)
    theirs = SigV4Auth(botocore_keys, "secretsmanager", REGION)
    text = theirs.string_to_sign(request, theirs.canonical_request(request))
    assert ours["authorization"].endswith(f"Signature={theirs.signature(text, request)}")


@pytest.mark.parametrize(
    ("region", "host_name"),
    [
        ("eu-central-1", "secretsmanager.eu-central-1.amazonaws.com"),
        ("cn-north-1", "secretsmanager.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_the_endpoint_follows_the_region(monkeypatch, region, host_name):
    monkeypatch.delenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", raising=False)
    assert Secret(region, NAME).endpoint == f"https://{host_name}"


@given(st.text())
def test_any_secret_is_one_word_or_a_clear_refusal(text):
    try:
        token = checked_token(text)
    except FetchError:
        return
    assert token == text.strip()
    assert token.isascii()
    assert token.isprintable()
    assert not set(token) & set(" \t\r\n")
