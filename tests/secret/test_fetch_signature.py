"""The signed request of the token script."""

import datetime
import json

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials

from files.token.fetch_token import Credentials, Secret, signed_headers
from tests.secret.conftest import NAME
from tests.secret.secrets_manager import REGION


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
