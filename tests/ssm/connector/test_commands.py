"""Commands with their arguments, and files, through the connector in process."""

import io
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import HiddenValue, QuoteString, StringCommand

from pyinfra_ssm.connector import HostError
from tests.ssm.connector.conftest import NAME

ARGUMENTS = {
    "env": ({"_env": {"COLOUR": "it's $blue"}}, 'printf %s "$COLOUR"', "it's $blue"),
    "chdir": ({"_chdir": "/usr"}, "pwd", "/usr"),
    "shell": ({"_shell_executable": "bash"}, "echo ${BASH_VERSION:+bash}", "bash"),
    "sudo": ({"_sudo": True}, "id -un", "root"),
    "sudo as another": ({"_sudo": True, "_sudo_user": "nobody"}, "id -un", "nobody"),
    "su as another": ({"_su_user": "nobody", "_su_shell": "sh"}, "id -un", "nobody"),
    "stdin": ({"_stdin": ["one", "two"]}, "cat", "one\ntwo"),
    "terminal": ({"_get_pty": True}, "test -t 1 && echo yes", "yes"),
}


@pytest.mark.parametrize(("arguments", "command", "output"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_every_argument_is_honoured(host: Any, arguments: Any, command: str, output: Any) -> None:
    ok, lines = host.run_shell_command(StringCommand(command), **arguments)
    assert (ok, lines.stdout) == (True, output)


def test_success_is_what_the_caller_says_it_is(host: Any) -> None:
    assert host.run_shell_command(StringCommand("exit 3"))[0] is False
    assert host.run_shell_command(StringCommand("exit 3"), _success_exit_codes=[0, 3])[0] is True


def test_a_timeout_is_what_pyinfra_takes_for_one(host: Any) -> None:
    with pytest.raises(TimeoutError):
        host.run_shell_command(StringCommand("sleep 1000"), _timeout=1)


def test_output_that_is_not_text_is_replaced_and_not_lost(host: Any) -> None:
    _, lines = host.run_shell_command(StringCommand("printf 'a\\377b\\nnext\\n\\nlast'"))
    assert lines.stdout_lines == ["a\ufffdb", "next", "", "last"]


def test_a_death_by_signal_is_said(host: Any) -> None:
    ok, lines = host.run_shell_command(StringCommand("kill -TERM $$"))
    assert ok is False
    assert lines.stderr_lines == ["The command was killed by signal 15."]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the connector printed."""
    lines = []
    monkeypatch.setattr("pyinfra.api.output._echo", lambda text, **_: lines.append(text))
    return lines


def test_output_is_printed_line_by_line_under_the_name_of_its_host(host: Any, printed: Any) -> None:
    host.run_shell_command(StringCommand("echo shown; echo bad >&2; printf end"), print_output=True)
    assert sorted(printed) == [f"[{NAME}] {line}" for line in ("bad", "end", "shown")]


def test_input_is_printed_without_its_secrets(host: Any, printed: Any) -> None:
    command = StringCommand("printf %s", QuoteString(HiddenValue("hunter2")))
    ok, lines = host.run_shell_command(command, print_input=True)
    assert (ok, lines.stdout) == (True, "hunter2")
    (line,) = printed
    assert "*MASKED*" in line
    assert "hunter2" not in line


def test_files_go_by_name_and_by_object(host: Any, tmp_path: Path) -> None:
    assert host.put_file(io.StringIO("caf\u00e9\n"), str(tmp_path / "text"))
    assert (tmp_path / "text").read_text() == "caf\u00e9\n"
    assert host.put_file(str(tmp_path / "text"), str(tmp_path / "copy"), _sudo=True)
    sink = io.BytesIO()
    assert host.get_file(str(tmp_path / "copy"), sink)
    assert sink.getvalue().decode() == "caf\u00e9\n"
    assert host.get_file(str(tmp_path / "copy"), str(tmp_path / "back"), _sudo=True)
    assert (tmp_path / "back").read_text() == "caf\u00e9\n"


def test_a_file_error_names_host_action_and_cause(host: Any) -> None:
    with pytest.raises(HostError, match=rf"\[{NAME}\] could not write /no/such/f: No such file"):
        host.put_file(io.StringIO("x"), "/no/such/f")
    with pytest.raises(HostError, match=rf"\[{NAME}\] could not read /no/such: No such file"):
        host.get_file("/no/such", io.BytesIO())


def test_rsync_says_what_to_use_instead(host: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"files\.sync"):
        host.check_can_rsync()
