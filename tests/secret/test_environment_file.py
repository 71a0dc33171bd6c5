"""What we write, systemd reads back: quoting of environment files, by a port of its parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desired.unit_syntax import command_line, environment_file
from files.token.fetch_token import environment_line
from tests.secret.systemd_environment import parse

values = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=60)
nasty = st.text(st.sampled_from("\"'\\`$#;= \t%&ab\r"), max_size=30)
names = st.from_regex(r"[A-Z_][A-Z0-9_]{0,15}", fullmatch=True)


@given(values | nasty)
def test_systemd_reads_back_what_was_written(value):
    assert parse(environment_line("HF_TOKEN", value) + "\n") == {"HF_TOKEN": value}


@given(st.dictionaries(names, values | nasty, max_size=8))
def test_no_value_reaches_into_another_line(variables):
    assert parse(environment_file(variables, "Managed")) == variables


READ_BY_SYSTEMD = {
    "a dollar is literal": ("A=$HOME\n", {"A": "$HOME"}),
    "a hash inside a value is literal": ("A=a#b\n", {"A": "a#b"}),
    "an unquoted backslash is eaten": ("A=a\\b\n", {"A": "ab"}),
    "a backslash continues the line": ("A=a\\\nb\n", {"A": "ab"}),
    "an unclosed quote swallows the next line": ('A="a\nB=b\n', {"A": "a\nB=b\n"}),
    "export becomes part of the name": ("export A=a\n", {"export A": "a"}),
    "blanks at the end are dropped": ("A= a b \nB=''\n", {"A": "a b", "B": ""}),
}


@pytest.mark.parametrize(("text", "found"), READ_BY_SYSTEMD.values(), ids=READ_BY_SYSTEMD)
def test_the_port_reads_as_systemd_does(text, found):
    assert parse(text) == found


@pytest.mark.parametrize("value", ["two\nlines", "a\0b"])
def test_what_no_environment_file_can_hold_is_refused(value):
    with pytest.raises(ValueError, match="newline or a NUL"):
        environment_line("A", value)


COMMANDS = {
    "plain": (
        ["/usr/bin/python3", "-m", "a.b", "--port=8000"],
        "/usr/bin/python3 -m a.b --port=8000",
    ),
    "blank": (["a b", ""], '"a b" ""'),
    "specifier and variable": (["100%", "$HOME"], '"100%%" "$$HOME"'),
    "quotes": (['say "hi"', "it's", "a\\b"], '"say \\"hi\\"" "it\'s" "a\\\\b"'),
    "separator": (["a", ";", "b"], 'a ";" b'),
    "newline": (["a\nUser=root"], '"a\\nUser=root"'),
}


@pytest.mark.parametrize(("words", "line"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_line_keeps_its_words(words, line):
    assert command_line(words) == line
