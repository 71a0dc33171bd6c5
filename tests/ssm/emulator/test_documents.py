import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyinfra_ssm.emulator.documents import DOCUMENTS, SessionDocument, SessionType
from tests.ssm.emulator.conftest import ROOT_SHELL

NON_INTERACTIVE = DOCUMENTS["AWS-StartNonInteractiveCommand"]


def test_parameters_take_their_places_and_defaults_fill_the_rest() -> None:
    filled = NON_INTERACTIVE.fill({"command": ["id -u"]})
    assert (filled.command, filled.separate_output) == ("id -u", "False")
    filled = NON_INTERACTIVE.fill({"command": ["id"], "separateOutputStream": ["True"]})
    assert filled.separate_output == "True"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "not given: command"),
        ({"command": ["x"], "comand": ["y"]}, "no such parameter: comand"),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NON_INTERACTIVE.fill(parameters)


@given(st.text())
def test_a_command_is_taken_as_it_is(command: str) -> None:
    filled = DOCUMENTS["AWS-StartInteractiveCommand"].fill({"command": [command]})
    assert filled.command == command


def test_a_document_is_read_as_the_console_shows_it() -> None:
    assert SessionDocument.from_json(ROOT_SHELL) == SessionDocument(
        SessionType.INTERACTIVE, "stty raw -echo; exec sh", elevated=True
    )
    port = SessionDocument.from_json(
        {
            "sessionType": "Port",
            "parameters": {"number": {"type": "String", "default": "22"}},
            "properties": {"portNumber": "{{ number }}"},
        }
    )
    assert port.fill({}).port == "22"
    assert port.fill({"number": ["2222"]}).port == "2222"
