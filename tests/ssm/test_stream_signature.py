"""The signature of a stream's opening, computed here by hand from AWS's description of it."""

import hashlib
import hmac

import pytest
from botocore.credentials import Credentials

from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._stream_signature import signature
from pyinfra_ssm.emulator import DEFAULT_ID
from tests.ssm.conftest import OPTIONS, Emulate, Host, account

URL = (
    "wss://ssmmessages.us-east-1.amazonaws.com/v1/data-channel/user-0"
    "?role=publish_subscribe&cell-number=AA+b/c=="
)
CANONICAL = """GET
/v1/data-channel/user-0
cell-number=AA%20b%2Fc%3D%3D&role=publish_subscribe
host:ssmmessages.us-east-1.amazonaws.com
x-amz-date:{date}
x-amz-security-token:session

host;x-amz-date;x-amz-security-token
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"""


def test_the_signature_is_that_of_the_escaped_address() -> None:
    headers = signature(URL, Credentials("AKID", "secret", "session"), "us-east-1")
    date = headers["X-Amz-Date"]
    day, canonical = date[:8], CANONICAL.format(date=date).encode()
    scope = f"{day}/us-east-1/ssmmessages/aws4_request"
    digest = hashlib.sha256(canonical).hexdigest()
    key = b"AWS4secret"
    for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}"):
        key = hmac.digest(key, part.encode(), "sha256")
    assert headers["Authorization"] == (
        f"AWS4-HMAC-SHA256 Credential=AKID/{scope}, "
        f"SignedHeaders=host;x-amz-date;x-amz-security-token, Signature={key.hex()}"
    )
    assert headers["X-Amz-Security-Token"] == "session"


@pytest.mark.parametrize("wanted", [False, True])
def test_a_stream_is_opened_unsigned_and_signed_where_that_is_refused(
    emulate: Emulate, wanted: bool
) -> None:
    emulator = emulate(signature_wanted=wanted)
    transport = SessionTransport(account(), DEFAULT_ID, OPTIONS)
    transport.open()
    try:
        assert Host(emulator, transport).run("echo open")[1] == b"open\n"
    finally:
        transport.close()
