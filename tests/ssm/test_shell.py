import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm._shell import shell_arguments

COMMANDS = {
    "pyinfra's own wrapping": ("sh -c 'echo \"$HOME\"'", ["sh", "-c", 'echo "$HOME"']),
    "bash": ("bash -c 'a b'", ["bash", "-c", "a b"]),
    "a bare command": ("uptime", ["sh", "-c", "uptime"]),
    "something before": ("env A=b sh -c 'x'", ["sh", "-c", "env A=b sh -c 'x'"]),
    "something after": ("sh -c 'x' >/dev/null", ["sh", "-c", "sh -c 'x' >/dev/null"]),
    "an expansion": ('sh -c "$HOME"', ["sh", "-c", 'sh -c "$HOME"']),
    "an unclosed quote": ("echo 'x", ["sh", "-c", "echo 'x"]),
}


@pytest.mark.parametrize(("command", "arguments"), COMMANDS.values(), ids=COMMANDS)
def test_one_shell_where_one_is_enough(command: str, arguments: Any) -> None:
    assert shell_arguments(command) == arguments


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_a_quoted_script_stays_what_it_was(script: str) -> None:
    assert shell_arguments(f"sh -c {shlex.quote(script)}") == ["sh", "-c", script]
