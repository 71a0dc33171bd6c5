#!/usr/bin/python3
"""Fetch a token from Secrets Manager with this instance's own role into an EnvironmentFile.

Standard library alone: the host has no AWS CLI and no boto3. Each fault prints one line that names
its remedy. The token is never printed, and the file is never readable by anyone but root.
"""

import argparse
import datetime
import email.utils
import hashlib
import hmac
import json
import os
import re
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SERVICE = "secretsmanager"
METADATA = "http://169.254.169.254"
ATTEMPTS = 6  # waits of 1, 2, 4, 8 and 16 s between them: a boot's network needs about 20 s
RETRIED = frozenset({"ThrottlingException", "Throttling", "InternalServiceError"})
SKEWED = frozenset({"InvalidSignatureException", "SignatureDoesNotMatch", "RequestExpired"})
# In double quotes systemd drops the backslash in front of exactly these.
_NEEDS_BACKSLASH = re.compile(r'(["\\`$])')


class FetchError(Exception):
    """Why there is no token, and what to do about it; `retry` where waiting may help."""

    def __init__(self, message: str, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry


@dataclass(frozen=True)
class Credentials:
    role: str
    access_key: str
    secret_key: str
    session_token: str


@dataclass(frozen=True)
class Secret:
    region: str
    secret_id: str

    @property
    def endpoint(self) -> str:
        """The service's URL; the SDKs' own variable overrides it, for a VPC endpoint or a test."""
        suffix = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        default = f"https://{SERVICE}.{self.region}.{suffix}"
        return os.environ.get("AWS_ENDPOINT_URL_SECRETS_MANAGER", default)


def environment_line(name: str, value: str) -> str:
    """Return one assignment that systemd reads back as exactly `value`."""
    if "\n" in value or "\0" in value:
        raise ValueError(f"{name}: an environment file cannot hold a newline or a NUL")
    escaped = _NEEDS_BACKSLASH.sub(r"\\\1", value)
    return f'{name}="{escaped}"'


def checked_token(text: str) -> str:
    """Return the token without the blanks around it; refuse what is not one printable word."""
    token = text.strip()
    if not token:
        raise FetchError("the secret is empty. Put the bare token into it as its SecretString")
    if not re.fullmatch(r"[!-~]+", token):
        raise FetchError(
            f"the secret is not one printable word ({len(token)} characters). "
            "Store the bare token: no JSON, no key=value pair, no second line"
        )
    if token[0] in "{[":
        raise FetchError("the secret looks like JSON. Store the bare token as its SecretString")
    return token


def credentials() -> Credentials:
    """Return the keys of the instance's role, by the metadata service's second version."""
    base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA).rstrip("/")
    token = _metadata(
        base + "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "300"}, method="PUT"
    )
    header = {"X-aws-ec2-metadata-token": token}
    path = base + "/latest/meta-data/iam/security-credentials/"
    role = _metadata(path, header).strip().split("\n")[0]
    if not role:
        raise FetchError(_NO_ROLE)
    try:
        keys = json.loads(_metadata(path + role, header))
        return Credentials(role, keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"])
    except (ValueError, KeyError) as error:
        raise FetchError(
            f"the metadata service has no usable keys for role {role}. Check that the role still "
            "exists and that ec2.amazonaws.com may assume it",
            retry=True,
        ) from error


_NO_ROLE = (
    "this instance has no role. Attach an instance profile that allows "
    "secretsmanager:GetSecretValue on the secret"
)


def _metadata(url: str, headers: Mapping[str, str], method: str = "GET") -> str:
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as error:
        if error.code == 404 and "security-credentials" in url:
            raise FetchError(_NO_ROLE, retry=True) from error
        raise FetchError(
            f"the metadata service answered {error.code} to {method}. Set HttpEndpoint=enabled on "
            "the instance (aws ec2 modify-instance-metadata-options)"
        ) from error
    except OSError as error:
        raise FetchError(
            f"no instance metadata service ({error}). On EC2: set HttpEndpoint=enabled and, behind "
            'a bridge, a hop limit of 2. Elsewhere: set hf_token_source = "none"',
            retry=True,
        ) from error


def signing_key(keys: Credentials, scope: str) -> bytes:
    """Return the key that signs in a scope of date, region and service."""
    key = b"AWS4" + keys.secret_key.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def signed_headers(
    secret: Secret, keys: Credentials, body: bytes, now: datetime.datetime
) -> dict[str, str]:
    """Return the headers of a POST of `body`, signed by Signature Version 4. `now` is in UTC."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{secret.region}/{SERVICE}/aws4_request"
    headers = {
        "content-type": "application/x-amz-json-1.1",
        "host": secret.endpoint.split("//", 1)[1].split("/", 1)[0],
        "x-amz-date": stamp,
        "x-amz-security-token": keys.session_token,
        "x-amz-target": f"{SERVICE}.GetSecretValue",
    }
    names = ";".join(headers)
    lines = [f"{key}:{value}" for key, value in headers.items()]
    canonical = "\n".join(["POST", "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()])
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = hmac.digest(signing_key(keys, scope), text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return headers


def secret_value(secret: Secret, keys: Credentials) -> str:
    """Return the secret's text; every fault of the service becomes a FetchError."""
    body = json.dumps({"SecretId": secret.secret_id}).encode()
    headers = signed_headers(secret, keys, body, datetime.datetime.now(datetime.UTC))
    request = urllib.request.Request(secret.endpoint, data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        raise _service_error(secret, keys, error) from error
    except (OSError, ValueError) as error:
        raise FetchError(
            f"cannot reach {secret.endpoint} ({error}). The subnet needs a NAT or a VPC endpoint "
            f"com.amazonaws.{secret.region}.{SERVICE}, and its security group port 443",
            retry=True,
        ) from error
    if "SecretString" not in answer:
        raise FetchError(
            f"secret {secret.secret_id} is binary. Store the token as its SecretString instead"
        )
    return str(answer["SecretString"])


def _service_error(secret: Secret, keys: Credentials, error: urllib.error.HTTPError) -> FetchError:
    fault = _fault(error)
    kind = str(fault.get("__type", error.code)).rsplit("#", 1)[-1]
    said = str(fault.get("message") or fault.get("Message") or "")
    where = f"secret {secret.secret_id} in {secret.region}"
    if kind in SKEWED:
        return FetchError(_skew_message(error.headers.get("Date"), kind))
    remedies = {
        "AccessDeniedException": f"role {keys.role} may not read it. Allow it "
        "secretsmanager:GetSecretValue there, and kms:Decrypt where it has a key of its own",
        "ResourceNotFoundException": "there is no such secret. "
        "Check hf_token_secret and hf_token_region",
        "InvalidRequestException": "it cannot be read now; it may be marked for deletion "
        "(aws secretsmanager restore-secret)",
        "DecryptionFailure": f"its KMS key refuses. Allow role {keys.role} kms:Decrypt on that key",
        "ExpiredTokenException": "the role's keys have expired. Check the clock, then try again",
        "UnrecognizedClientException": "the role's keys are unknown there. Check the region",
    }
    remedy = remedies.get(kind, f"the service said {kind}: {said}")
    failing = kind in RETRIED or error.code >= 500
    if failing:
        remedy = f"the service is throttling or failing ({kind}). Try again in a minute"
    return FetchError(f"{where}: {remedy}", retry=failing)


def _fault(error: urllib.error.HTTPError) -> dict[str, Any]:
    try:
        fault = json.load(error)
    except (ValueError, OSError):
        return {}
    return fault if isinstance(fault, dict) else {}


def _skew_message(service_date: str | None, kind: str) -> str:
    skew = ""
    if service_date:
        theirs = email.utils.parsedate_to_datetime(service_date).timestamp()
        skew = f"; this clock is {time.time() - theirs:+.0f} s off the service's"
    return (
        f"the service refused the signature ({kind}{skew}). More than 300 s is too much: "
        "start chrony or systemd-timesyncd (timedatectl set-ntp true)"
    )


def with_retries(fetch: Callable[[], str], sleep: Callable[[float], None]) -> str:
    """Return what `fetch` returns; retry the faults that waiting may cure."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return fetch()
        except FetchError as error:
            if not error.retry:
                raise
            print(f"attempt {attempt + 1} of {ATTEMPTS}: {error}", flush=True)
            sleep(2**attempt)
    return fetch()


def write_private(path: str, text: str) -> None:
    """Write a file that only root can read, at no moment otherwise, and rename it into place."""
    os.umask(0o077)
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".token-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--region", required=True)
    parser.add_argument("--secret-id", required=True)
    parser.add_argument("--variable", default="HF_TOKEN", help="name in the environment file")
    parser.add_argument("--output", required=True, help="the environment file")
    parser.add_argument("--keep-last", action="store_true", help="on a fault the old file will do")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None, sleep: Callable[[float], None] = time.sleep) -> int:
    """Fetch and write; return the exit status. No argument is a secret."""
    options = arguments(words)
    secret = Secret(options.region, options.secret_id)
    try:
        token = checked_token(with_retries(lambda: secret_value(secret, credentials()), sleep))
    except FetchError as error:
        return _failed(options.output, options.keep_last, error)
    # The comment tells the deploy whether this is the secret that it wants.
    source = f"# {SERVICE} {secret.region} {secret.secret_id}"
    line = environment_line(options.variable, token)
    write_private(options.output, f"{source}\n{line}\n")
    print(f"wrote {options.output} from secret {secret.secret_id} in {secret.region}")
    return 0


def _failed(output: str, keep_last: bool, error: FetchError) -> int:
    if keep_last and os.path.exists(output):
        print(f"keeping the last good token: {error}", file=sys.stderr)
        return 0
    if os.path.exists(output):
        os.unlink(output)  # a token that may have been revoked serves nobody
    print(f"no token: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
