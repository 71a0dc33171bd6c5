"""A download is what the host says it sent, or an error."""

import hashlib
import io
import json
from typing import Any

import pytest

from pyinfra_ssm._arriving import Arriving
from pyinfra_ssm._errors import ProtocolError, RemoteFileError
from pyinfra_ssm.remote.framing import Frame, Kind


def ending(size: int, content: bytes) -> Frame:
    members: Any = {"size": size, "sha256": hashlib.sha256(content).hexdigest()}
    return Frame(Kind.CONTENT_END, 1, json.dumps(members).encode())


def test_what_came_is_what_was_sent() -> None:
    sink = io.BytesIO()
    arriving = Arriving("/file", sink)
    arriving.add(b"one ")
    arriving.add(b"two")
    arriving.check(ending(7, b"one two"))
    assert sink.getvalue() == b"one two"


@pytest.mark.parametrize("said", [ending(7, b"one tvo"), ending(8, b"one two")])
def test_what_was_damaged_on_its_way_is_an_error(said: Frame) -> None:
    arriving = Arriving("/file", io.BytesIO())
    arriving.add(b"one two")
    with pytest.raises(RemoteFileError, match="/file was damaged on its way: 7 bytes came"):
        arriving.check(said)


def test_an_ending_that_says_nothing_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="not JSON"):
        Arriving("/file", io.BytesIO()).check(Frame(Kind.CONTENT_END, 1, b"well"))


def test_another_attempt_starts_where_the_first_did() -> None:
    sink = io.BytesIO(b"before")
    sink.seek(6)
    arriving = Arriving("/file", sink)
    arriving.add(b"half of it")
    arriving.restart()
    arriving.add(b"all")
    arriving.check(ending(3, b"all"))
    assert sink.getvalue() == b"beforeall"
