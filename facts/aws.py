"""AWS as this machine sees it: clients made late, and errors that fit on one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    InvalidRegionError,
    NoRegionError,
)
from botocore.exceptions import ConnectionError as NoConnectionError
from pyinfra.api.exceptions import PyinfraError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_service_quotas import ServiceQuotasClient
    from mypy_boto3_ssm import SSMClient

POLICY = "docs/iam/operator.json"

# The services spell one fault in many ways; each spelling here was read in botocore's models or in
# the error code tables of EC2's and STS's API references.
DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
STALE = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
THROTTLED = frozenset(
    {
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)

REMEDIES = {
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": (
        "Have an administrator make the service-linked role of spot.amazonaws.com, once."
    ),
    "InsufficientInstanceCapacity": "Its zone has no room now: try later, or launch elsewhere.",
    "VcpuLimitExceeded": "Ask for more vCPUs in Service Quotas, or stop what else runs.",
    "OperationNotPermitted": "Take its termination or stop protection off first.",
    "OptInRequired": "Finish the account's sign-up for EC2.",
    "PendingVerification": "AWS is still verifying the account in this region: try again later.",
    "Blocked": "The account is blocked: ask AWS support.",
}


class AwsError(PyinfraError):
    """What was being asked of AWS, where, why it failed and what to do: one line.

    pyinfra prints the message of its own kind of errors without a traceback.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code  # AWS's own word for it; empty where the call never got there


@dataclass
class Aws:
    """Clients of boto3's standard credential chain, each made when it is first used.

    Late, because pyinfra's command patches the sockets (gevent) after it starts, and a client
    made before that dies with RecursionError. `wanted_region` None: the one of the chain.
    """

    wanted_region: str | None = None

    # Standard mode repeats throttled and broken calls, with jitter, up to this often.
    _config = Config(retries={"mode": "standard", "total_max_attempts": 6})

    @cached_property
    def session(self) -> boto3.session.Session:
        try:
            return boto3.session.Session(region_name=self.wanted_region)
        except BotoCoreError as error:  # such as a profile that does not exist
            message = explain_local("read the AWS configuration", "no region", error)
            raise AwsError(message) from error

    @property
    def region(self) -> str:
        """The region that the chain names, for messages; `no region` where it names none."""
        return self.session.region_name or "no region"

    @cached_property
    def ec2(self) -> "EC2Client":
        with self.asking("reach EC2"):
            return self.session.client("ec2", config=self._config)

    @cached_property
    def ssm(self) -> "SSMClient":
        with self.asking("reach Systems Manager"):
            return self.session.client("ssm", config=self._config)

    @cached_property
    def quotas(self) -> "ServiceQuotasClient":
        with self.asking("reach Service Quotas"):
            return self.session.client("service-quotas", config=self._config)

    @cached_property
    def iam(self) -> Any:  # its type stubs are a package of their own, for the one call made here
        with self.asking("reach IAM"):
            return self.session.client("iam", config=self._config)

    @cached_property
    def pricing(self) -> Any:  # as for IAM
        with self.asking("reach the price list"):
            # It is the same list wherever it is asked for, and few regions have it. Prices are
            # only shown, so where it cannot be reached nobody should wait for it.
            brief = Config(connect_timeout=3, read_timeout=5, retries={"total_max_attempts": 1})
            return self.session.client("pricing", region_name="us-east-1", config=brief)

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Turn what botocore raises while `what` is being done into an AwsError."""
        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            why = error.response.get("Error", {}).get("Message", "")
            message = explain(what, self.region, error.operation_name, code, why)
            raise AwsError(message, code) from error
        except BotoCoreError as error:
            raise AwsError(explain_local(what, self.region, error)) from error


def explain(what: str, region: str, operation: str, code: str, why: str) -> str:
    """Return one line for an error that AWS answered with."""
    reason = _shorten(why)
    if code in DENIED:
        remedy = f"Allow {operation} to whoever runs this: {POLICY} has all that is needed."
    elif code in STALE:
        remedy = "Renew the credentials (AWS_PROFILE, AWS_* variables) and check this clock."
    elif code in THROTTLED:
        remedy = "Other callers use up the account's request rate: wait a minute and run again."
    else:
        remedy = REMEDIES.get(code, f"{operation} was the call; run again once that is mended.")
    return f"[{region}] cannot {what}: {code}: {reason}. {remedy}"


def explain_local(what: str, region: str, error: BotoCoreError) -> str:
    """Return one line for an error that arose before AWS answered."""
    match error:
        case NoRegionError() | InvalidRegionError():
            remedy = "Set AWS_DEFAULT_REGION, or a region in the profile."
        case HTTPClientError() | NoConnectionError():
            remedy = "Check this machine's network, its proxy settings and the region's name."
        case _:
            remedy = "Set AWS_PROFILE or the AWS_* variables to credentials that are valid now."
    return f"[{region}] cannot {what}: {type(error).__name__}: {_shorten(str(error))}. {remedy}"


def _shorten(why: str) -> str:
    """Return the first line, without the encoded blob that EC2 adds to a refusal."""
    first = " ".join(why.split("Encoded authorization failure message")[0].split())
    return first.rstrip(". ")[:300] or "no reason given"
