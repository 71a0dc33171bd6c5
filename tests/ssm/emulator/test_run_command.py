import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm.emulator import DEFAULT_ID, Emulator
from pyinfra_ssm.emulator.run_command import cut, decoded, outcome, script_argv, time_limit
from tests.ssm.emulator.client import service
from tests.ssm.vectors import recorded

DOCUMENT = "AWS-RunShellScript"


def run(ssm: Any, *commands: str, **parameters: str) -> dict[str, Any]:
    """Run a script; return the first answer that shows its ending."""
    listed = {name: [value] for name, value in parameters.items()}
    sent = ssm.send_command(
        InstanceIds=[DEFAULT_ID],
        DocumentName=DOCUMENT,
        Parameters={"commands": list(commands)} | listed,
    )
    return ending(ssm, sent["Command"]["CommandId"])


def ending(ssm: Any, command_id: str) -> dict[str, Any]:
    while True:
        try:
            answer = ssm.get_command_invocation(CommandId=command_id, InstanceId=DEFAULT_ID)
        except ssm.exceptions.InvocationDoesNotExist:
            continue
        if answer["Status"] != "InProgress":
            return dict(answer)


@pytest.mark.parametrize(
    "name", ["11_run_command_success", "11_run_command_exit3", "11_run_command_truncated"]
)
def test_a_script_ends_as_recorded(shared: Emulator, name: str) -> None:
    frames = recorded(name)
    asked = json.loads(json.loads(frames[0].fields["payload"])["Content"])
    replies = [
        json.loads(json.loads(frame.fields["payload"])["content"])
        for frame in frames
        if frame.fields["message_type"] == "agent_job_reply"
    ]
    final = next(each for each in replies if each["documentStatus"] != "InProgress")
    wanted = final["runtimeStatus"]["aws:runShellScript"]
    answer = run(service(shared, "ssm"), *asked["Parameters"]["commands"])
    assert answer["Status"] == answer["StatusDetails"] == wanted["status"]
    assert answer["ResponseCode"] == wanted["code"]
    assert answer["StandardOutputContent"] == wanted["standardOutput"]
    assert answer["StandardErrorContent"] == wanted["standardError"]


def test_scripts_read_end_of_file_in_the_directory_asked_for(shared: Emulator) -> None:
    answer = run(service(shared, "ssm"), "cat; pwd", "id -u", workingDirectory="/tmp")
    assert answer["StandardOutputContent"] == "/tmp\n0\n"


def test_a_script_that_runs_out_of_time_is_killed_with_its_children(shared: Emulator) -> None:
    ssm = service(shared, "ssm")
    answer = run(ssm, "echo begun", "sleep 321 & wait", executionTimeout="5")
    assert (answer["Status"], answer["StatusDetails"]) == ("TimedOut", "ExecutionTimedOut")
    assert answer["StandardOutputContent"] == "begun\n"
    children = run(ssm, "pgrep -xf 'sleep 321' || echo none")
    assert children["StandardOutputContent"] == "none\n"


def test_an_invocation_is_missing_at_first_and_one_in_progress_comes_late(
    start: Callable[..., Emulator],
) -> None:
    ssm = service(start(invocation_missing=2), "ssm")
    sent = ssm.send_command(
        InstanceIds=[DEFAULT_ID], DocumentName=DOCUMENT, Parameters={"commands": ["exit 3"]}
    )
    ident = {"CommandId": sent["Command"]["CommandId"], "InstanceId": DEFAULT_ID}
    for _ in range(2):
        with pytest.raises(ssm.exceptions.InvocationDoesNotExist):
            ssm.get_command_invocation(**ident)
    assert ending(ssm, ident["CommandId"])["Status"] == "Failed"
    statuses = [ssm.get_command_invocation(**ident)["Status"] for _ in range(3)]
    assert statuses == ["InProgress", "Failed", "Failed"]


def test_five_scripts_run_at_once_and_the_sixth_waits(
    start: Callable[..., Emulator], tmp_path: Any
) -> None:
    ssm = service(start(), "ssm")
    # Each of five waits until five have begun: fewer slots, and they would run out of time.
    begin = f"touch {tmp_path}/$$; until [ $(ls {tmp_path} | wc -l) -ge 5 ]; do sleep 0.05; done"
    sent = [
        ssm.send_command(
            InstanceIds=[DEFAULT_ID],
            DocumentName=DOCUMENT,
            Parameters={"commands": [script], "executionTimeout": ["10"]},
        )["Command"]["CommandId"]
        for script in [begin] * 5 + [f"ls {tmp_path} | wc -l"]
    ]
    answers = [ending(ssm, command_id) for command_id in sent]
    assert [answer["Status"] for answer in answers] == ["Success"] * 6
    assert answers[5]["StandardOutputContent"] == "5\n"


def test_instances_that_cannot_be_reached_are_named(shared: Emulator) -> None:
    ssm = service(shared, "ssm")
    bad = "i-ffffffffffffffff0"
    with pytest.raises(ssm.exceptions.InvalidInstanceId, match=bad):
        ssm.send_command(
            InstanceIds=[DEFAULT_ID, bad], DocumentName=DOCUMENT, Parameters={"commands": [""]}
        )


def test_parameters_that_are_too_large_are_refused(start: Callable[..., Emulator]) -> None:
    ssm = service(start(max_command_bytes=100), "ssm")
    assert run(ssm, "#" * 100)["Status"] == "Success"
    with pytest.raises(ssm.exceptions.MaxDocumentSizeExceeded, match="101 bytes"):
        run(ssm, "#" * 101)


def test_each_bad_byte_becomes_one_replacement_character() -> None:
    assert (
        decoded(b"caf\xc3\xa9 \xff\xfe \xf0\x9f\x98\n") == "café \ufffd\ufffd \ufffd\ufffd\ufffd\n"
    )


@given(st.text(), st.integers(20, 50))
def test_a_cut_text_keeps_its_beginning_and_fits(text: str, limit: int) -> None:
    result = cut(text, limit)
    assert len(result) <= limit
    assert result == text or result == text[: limit - 20] + "--output truncated--"


def test_the_failure_counts_towards_the_limit_of_stderr() -> None:
    ended = outcome(7, b"", b"e" * 8_000)
    assert len(ended.stderr) == 8_000
    assert ended.stderr.endswith("e--output truncated--")


def test_a_time_limit_out_of_range_is_the_default() -> None:
    limits = [time_limit(text) for text in ("60", "4", "172801", "", "soon")]
    assert limits == [60, 3600, 3600, 3600, 3600]


def test_the_first_line_chooses_the_interpreter() -> None:
    assert script_argv("echo hi") == ["sh", "-c", "echo hi"]
    script = "#!/usr/bin/env python3\nprint(1)"
    assert script_argv(script) == ["/usr/bin/env", "python3", "-c", script]
