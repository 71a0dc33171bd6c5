"""Errors of AWS as one line: what, where, why, what to do."""

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st

from facts.aws import DENIED, STALE, THROTTLED, Aws, AwsError, explain

codes = st.one_of(
    st.sampled_from(sorted(DENIED | STALE | THROTTLED)), st.from_regex(r"[A-Z]\w+", fullmatch=True)
)


@given(codes, st.text(max_size=2000))
def test_any_answer_of_aws_becomes_one_line_with_all_four_parts(code: str, why: str) -> None:
    told = explain("list the instances", "eu-central-1", "DescribeInstances", code, why)

    assert len(told.splitlines()) == 1
    assert len(told) < 700
    assert told.startswith(f"[eu-central-1] cannot list the instances: {code}: ")
    assert told.endswith(".")


def test_the_blob_that_ec2_adds_to_a_refusal_is_cut() -> None:
    why = (
        "You are not authorized to perform this operation. Encoded authorization failure message: x"
    )
    told = explain("start i-1", "eu-central-1", "StartInstances", "UnauthorizedOperation", why)
    assert told == (
        "[eu-central-1] cannot start i-1: UnauthorizedOperation: You are not authorized to perform "
        "this operation. Allow StartInstances to whoever runs this: docs/iam/operator.json has all "
        "that is needed."
    )


REMEDIES = {
    "denied": ("AccessDeniedException", "docs/iam/operator.json"),
    "stale": ("ExpiredToken", "Renew the credentials"),
    "throttled": ("ThrottlingException", "wait a minute"),
    "quota": ("VcpuLimitExceeded", "Service Quotas"),
    "protected": ("OperationNotPermitted", "protection"),
    "unknown": ("SomethingNew", "DescribeInstances was the call"),
}


@pytest.mark.parametrize(("code", "remedy"), REMEDIES.values(), ids=REMEDIES)
def test_each_kind_of_error_has_its_remedy(code: str, remedy: str) -> None:
    assert remedy in explain("look", "eu-central-1", "DescribeInstances", code, "")


def test_errors_keep_aws_own_code_and_their_cause(aws: Aws) -> None:
    answer = {"Error": {"Code": "ExpiredToken", "Message": "old"}}
    with pytest.raises(AwsError) as raised, aws.asking("look"):
        raise ClientError(answer, "DescribeInstances")  # type: ignore[arg-type]
    assert raised.value.code == "ExpiredToken"
    assert isinstance(raised.value.__cause__, ClientError)


LOCAL = {
    "credentials": (NoCredentialsError(), "Set AWS_PROFILE"),
    "network": (ConnectTimeoutError(endpoint_url="https://x"), "network"),
}


@pytest.mark.parametrize(("error", "remedy"), LOCAL.values(), ids=LOCAL)
def test_what_fails_before_aws_answers_has_no_code(aws: Aws, error: Exception, remedy: str) -> None:
    with pytest.raises(AwsError) as raised, aws.asking("look"):
        raise error
    assert raised.value.code == ""
    assert remedy in str(raised.value)


def test_other_errors_are_bugs_and_stay_what_they_are(aws: Aws) -> None:
    with pytest.raises(KeyError), aws.asking("look"):
        raise KeyError("x")
