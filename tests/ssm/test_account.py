"""The API's errors, waits and pages, against the emulated service."""

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from pyinfra_ssm import targets
from pyinfra_ssm._account import Account, Opening, Waiting
from pyinfra_ssm._errors import ServiceError
from pyinfra_ssm._remedies import explain
from pyinfra_ssm._session import new_lock
from pyinfra_ssm.emulator import DEFAULT_ID, Instance
from tests.ssm.conftest import Emulate


class Patient(Account):
    def __init__(self) -> None:
        self.waits: list[float] = []
        super().__init__(None, None, Waiting(self.waits.append, lambda: 1.0), new_lock())


@pytest.fixture
def patient() -> Patient:
    """An account that notes how long it would have waited, and does not."""
    return Patient()


def test_throttling_is_waited_out_ever_longer(emulate: Emulate, patient: Patient) -> None:
    emulate(throttle_first=6)
    patient.start_session(DEFAULT_ID, "AWS-StartInteractiveCommand", {"command": ["true"]})
    assert patient.waits == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]


def test_throttling_without_end_is_an_error(emulate: Emulate, patient: Patient) -> None:
    emulate(throttle_first=1000)
    with pytest.raises(ServiceError, match=r"ssm:TerminateSession failed.*Throttling"):
        patient.terminate_session("user-0")
    assert len(patient.waits) == 11


def test_a_service_that_does_not_answer_is_asked_twice(
    emulate: Emulate, patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulate()
    asked = []

    def time_out(**parameters: Any) -> None:
        asked.append(parameters)
        raise ReadTimeoutError(endpoint_url="https://ssm")

    monkeypatch.setattr(patient._client("ssm"), "terminate_session", time_out)
    with pytest.raises(ServiceError, match="did not answer"):
        patient.terminate_session("user-0")
    assert len(asked) == 2


def test_a_session_that_is_gone_cannot_be_resumed(emulate: Emulate, patient: Patient) -> None:
    emulate()
    assert patient.resume_session(Opening("user-0123456789abcdef0", "", "")) is None
    session = patient.start_session(
        DEFAULT_ID, "AWS-StartInteractiveCommand", {"command": ["true"]}
    )
    patient.terminate_session(session.session_id)
    assert patient.resume_session(session) is None


class Terse(Patient):
    def call(
        self, service: str, action: str, repeatable: bool = True, **parameters: Any
    ) -> dict[str, Any]:
        """Leave the stream's address out where it is known, as the API's model allows."""
        answer = super().call(service, action, repeatable, **parameters)
        return answer if action == "start_session" else answer | {"StreamUrl": None}


def test_a_resumed_session_keeps_its_address_if_none_is_given(emulate: Emulate) -> None:
    emulate()
    terse = Terse()
    parameters = {"command": ["true"]}
    session = terse.start_session(DEFAULT_ID, "AWS-StartInteractiveCommand", parameters)
    resumed = terse.resume_session(session)
    assert resumed is not None
    assert (resumed.session_id, resumed.url) == (session.session_id, session.url)
    assert resumed.token != session.token


def test_the_waits_are_of_random_length(emulate: Emulate) -> None:
    emulate(throttle_first=3)
    waits: list[float] = []
    chances = iter([0.25, 0.5, 0.75])
    account = Account(None, None, Waiting(waits.append, lambda: next(chances)), new_lock())
    account.start_session(DEFAULT_ID, "AWS-StartInteractiveCommand", {"command": ["true"]})
    assert waits == [0.125, 0.5, 1.5]


ERRORS = {
    "not connected": ({"not_connected": ["*"]}, "TargetNotConnected", "Check that the instance"),
    "denied": ({"denied": ["StartSession"]}, "AccessDeniedException", "Allow ssm:StartSession"),
}


@pytest.mark.parametrize(("faults", "code", "remedy"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_action_cause_and_remedy(
    emulate: Emulate, patient: Patient, faults: Any, code: str, remedy: str
) -> None:
    emulate(**faults)
    with pytest.raises(ServiceError, match=remedy) as caught:
        patient.start_session(DEFAULT_ID, "AWS-StartInteractiveCommand", {"command": ["true"]})
    assert caught.value.code == code
    assert str(caught.value).startswith("ssm:StartSession failed: ")
    assert patient.waits == []


def test_no_region_that_boto3_reads_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, patient: Patient, tmp_path: Path
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")  # of other SDKs
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    with pytest.raises(ServiceError, match="Set AWS_DEFAULT_REGION or the knob ssm_region"):
        patient.terminate_session("user-0")


SETTINGS = {
    "half of the credentials": ({"AWS_SECRET_ACCESS_KEY": ""}, "Set both AWS_ACCESS_KEY_ID"),
    "an endpoint that is none": ({"AWS_ENDPOINT_URL_SSM": "nonsense"}, "Check AWS_ENDPOINT_URL"),
    "an endpoint where nobody is": (
        {"AWS_ENDPOINT_URL_SSM": "http://127.0.0.1:1"},
        "Check the network",
    ),
    "a region that is none": (
        {"AWS_DEFAULT_REGION": "us west", "AWS_ENDPOINT_URL_SSM": ""},
        "Check AWS_DEFAULT_REGION",
    ),
    "a proxy that is not there": ({"http_proxy": "http://127.0.0.1:1"}, "proxy that https_proxy"),
}


@pytest.mark.parametrize(("changes", "remedy"), SETTINGS.values(), ids=SETTINGS)
def test_a_wrong_setting_says_which(
    emulate: Emulate,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    changes: dict[str, str],
    remedy: str,
) -> None:
    emulate()
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    account = Account(None, None, Waiting(lambda _: None, lambda: 1.0), new_lock())
    with pytest.raises(ServiceError, match=remedy):
        account.terminate_session("user-0")


def test_an_answer_is_given_in_the_services_own_words() -> None:
    answer: Any = {"Error": {"Code": "TargetNotConnected", "Message": "i-0 is not connected."}}
    text = explain("ssm", "start_session", ClientError(answer, "StartSession"))
    assert text.startswith(
        "ssm:StartSession failed: TargetNotConnected: i-0 is not connected. Check that"
    )


def test_no_credentials_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, patient: Patient, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with pytest.raises(ServiceError, match="Set AWS_PROFILE or the knob ssm_profile"):
        patient.terminate_session("user-0")


def test_an_unknown_profile_says_where_to_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    account = Account("nobody", None, Waiting(lambda _: None, lambda: 1.0), new_lock())
    with pytest.raises(ServiceError, match="ssm_profile"):
        account.terminate_session("user-0")


FLEET = [
    Instance(tags={"Role": "inference", "Name": "one"}),
    Instance(instance_id="i-00000000000000002", tags={"Role": "inference"}, state="stopped"),
    Instance(instance_id="i-00000000000000003", tags={"Role": "inference"}, ping="Inactive"),
    Instance(instance_id="i-00000000000000004", tags={"Role": "inference"}, state="terminated"),
    Instance(instance_id="i-00000000000000005", tags={"Role": "build"}),
]


def test_a_tag_finds_what_there_is_and_why_some_cannot_be_reached(
    emulate: Emulate, patient: Patient
) -> None:
    emulate(FLEET, page_size=1)
    found = {each.instance_id: each for each in targets.find(patient, {"Role": "inference"})}
    assert {name: each.unreachable for name, each in found.items()} == {
        "i-00000000000000002": "it is stopped",
        "i-00000000000000003": "its agent is Inactive",
        DEFAULT_ID: "",
    }
    assert (found[DEFAULT_ID].name, found[DEFAULT_ID].instance_type) == ("one", "g5g.xlarge")


WILD = [
    Instance(tags={"Role": "inference"}),
    Instance(instance_id="i-00000000000000002", tags={"Role": "inferior"}),
    Instance(instance_id="i-00000000000000003", tags={"Role": "build"}),
    Instance(instance_id="i-00000000000000004", tags={"Role": "a=b c"}),
]
VALUES = {
    "a beginning": ("infer*", [DEFAULT_ID, "i-00000000000000002"]),
    "one character": ("buil?", ["i-00000000000000003"]),
    "equals signs and spaces": ("a=b c", ["i-00000000000000004"]),
}


@pytest.mark.parametrize(("value", "ids"), VALUES.values(), ids=VALUES)
def test_a_value_may_have_wildcards(
    emulate: Emulate, patient: Patient, value: str, ids: list[str]
) -> None:
    emulate(WILD)
    found = targets.find(patient, {"Role": value})
    assert sorted(each.instance_id for each in found) == sorted(ids)
    assert not any(each.unreachable for each in found)


def test_a_hybrid_node_is_found_by_its_tag_in_ssm() -> None:
    nodes = [
        {"InstanceId": "mi-00000000000000001", "PingStatus": "Online"},
        {"InstanceId": "i-00000000000000009", "PingStatus": "Online"},
    ]
    assert [each.instance_id for each in targets.merge([], nodes)] == ["mi-00000000000000001"]


def test_an_instance_that_ssm_does_not_know_says_so() -> None:
    row = {"InstanceId": "i-00000000000000001", "State": {"Name": "running"}}
    (found,) = targets.merge([row], [])
    assert "SSM does not know it" in found.unreachable
