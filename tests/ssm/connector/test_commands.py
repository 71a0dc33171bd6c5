"""Commands with their arguments through the connector in process."""

import io
import os
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import HiddenValue, QuoteString, StringCommand

from pyinfra_ssm.emulator import Instance
from tests.ssm.conftest import Emulate
from tests.ssm.connector.conftest import NAME

ARGUMENTS = {
    "env": ({"_env": {"COLOUR": "it's $blue"}}, 'printf %s "$COLOUR"', "it's $blue"),
    "env of all sorts": (
        {"_env": {"A": "two\nlines", "B": "", "C": "`x` \\ \U0001f680", "D": 5}},
        'printf "%s|" "$A" "$B" "$C" "$D"',
        "two\nlines||`x` \\ \U0001f680|5|",
    ),
    "chdir": ({"_chdir": "/usr"}, "pwd", "/usr"),
    "no shell": ({"_shell_executable": None}, "echo $0", "sh"),
    "shell": ({"_shell_executable": "bash"}, "echo ${BASH_VERSION:+bash}", "bash"),
    "sudo": ({"_sudo": True}, "id -un", "root"),
    "sudo as another": ({"_sudo": True, "_sudo_user": "nobody"}, "id -un", "nobody"),
    "su as another": ({"_su_user": "nobody", "_su_shell": "sh"}, "id -un", "nobody"),
    "sudo and its shell": ({"_sudo": True, "_use_sudo_login": True}, "id -un", "root"),
    "sudo and our environment": ({"_sudo": True, "_preserve_sudo_env": True}, "id -un", "root"),
    "su and its shell": (
        {"_su_user": "nobody", "_su_shell": "sh", "_use_su_login": True},
        "id -un; echo $USER",
        "nobody\nnobody",
    ),
    "su and our environment": (
        {"_su_user": "nobody", "_su_shell": "sh", "_preserve_su_env": True},
        "id -un; echo $USER",
        "nobody\nroot",
    ),
    "sudo, then su": (
        {"_sudo": True, "_sudo_user": "root", "_su_user": "daemon", "_su_shell": "sh"},
        "id -un",
        "daemon",
    ),
    "doas": ({"_doas": True, "_doas_user": "nobody"}, "id -un", "doas -n -u nobody: root"),
    "dzdo": ({"_dzdo": True, "_dzdo_user": "nobody"}, "id -un", "dzdo -H -n -u nobody: root"),
    "bytes as stdin": ({"_stdin": b"a\xc3\xa9"}, "cat", "a\u00e9"),
    "a file as stdin": ({"_stdin": io.StringIO("one\ntwo")}, "cat", "one\ntwo"),
    "stdin on a terminal": (
        {"_get_pty": True, "_stdin": "yes"},
        "read answer; echo got $answer",
        "yes\ngot yes",
    ),
    "stdin": ({"_stdin": ["one", "two"]}, "cat", "one\ntwo"),
    "terminal": ({"_get_pty": True}, "test -t 1 && echo yes", "yes"),
}


# Says which options it was called with, and runs the command, which is behind them.
STUB = """#!/bin/sh
printf '%s ' "${0##*/}"
while [ "$1" != sh ]; do printf %s "$1"; shift; [ "$1" = sh ] || printf ' '; done
printf ': '; exec "$@"
"""


@pytest.fixture
def host_with_stubs(emulate: Emulate, inventory: Any, tmp_path: Path) -> Any:
    for name in ("doas", "dzdo"):
        (tmp_path / name).write_text(STUB)
        (tmp_path / name).chmod(0o755)
    emulate([Instance(environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})])
    return inventory().inventory.get_host(NAME)


@pytest.mark.parametrize(("arguments", "command", "output"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_every_argument_is_honoured(
    host_with_stubs: Any, arguments: Any, command: str, output: Any
) -> None:
    ok, lines = host_with_stubs.run_shell_command(StringCommand(command), **arguments)
    assert (ok, lines.stdout) == (True, output)


def test_a_folder_with_spaces_and_quotes_is_gone_to(host: Any, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder"'
    folder.mkdir()
    assert host.run_shell_command(StringCommand("pwd"), _chdir=str(folder))[1].stdout == str(folder)


def test_the_program_that_asks_for_sudos_password_is_removed_at_the_end(
    host: Any, tmp_path: Path
) -> None:
    """It is pyinfra's: a script in the folder for temporary files, for as long as we are here."""
    ok, lines = host.run_shell_command(
        StringCommand("id -un"), _sudo=True, _sudo_password="hunter2", _temp_dir=str(tmp_path)
    )
    assert (ok, lines.stdout) == (True, "root")
    assert len(list(tmp_path.iterdir())) == 1
    host.disconnect()
    assert list(tmp_path.iterdir()) == []


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


def test_rsync_says_what_to_use_instead(host: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"files\.sync"):
        host.check_can_rsync()
