"""Files through the connector in process: what pyinfra hands over, and as whom they are written."""

import io
import os
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm.connector import HostError
from tests.ssm.connector.conftest import NAME

NOBODY = 65534


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


def test_text_that_is_open_is_sent_as_the_bytes_it_is_of(host: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("caf\u00e9\r\n".encode())
    with (tmp_path / "text").open() as text:
        assert host.put_file(text, str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == "caf\u00e9\r\n".encode()
    sink = io.StringIO(newline="")
    assert host.get_file(str(tmp_path / "copy"), sink)
    assert sink.getvalue() == "caf\u00e9\r\n"


def test_a_download_that_fails_leaves_the_local_file_as_it_was(host: Any, tmp_path: Path) -> None:
    (tmp_path / "local").write_text("precious")
    with pytest.raises(HostError):
        host.get_file("/no/such", str(tmp_path / "local"))
    assert (tmp_path / "local").read_text() == "precious"


def test_relative_names_are_of_the_folder_that_was_asked_for(host: Any, tmp_path: Path) -> None:
    assert host.put_file(io.StringIO("x"), "file", _chdir=str(tmp_path))
    assert (tmp_path / "file").read_text() == "x"
    sink = io.BytesIO()
    assert host.get_file("file", sink, _chdir=str(tmp_path))
    assert sink.getvalue() == b"x"


OWNERS = {
    "nobody in particular": ({}, 0),
    "sudo": ({"_sudo": True}, 0),
    "sudo as another": ({"_sudo": True, "_sudo_user": "nobody"}, NOBODY),
    "su": ({"_su_user": "nobody"}, NOBODY),
    "su within sudo": ({"_sudo": True, "_sudo_user": "daemon", "_su_user": "nobody"}, NOBODY),
    "doas as another": ({"_doas": True, "_doas_user": "nobody"}, NOBODY),
    "sudo within doas": ({"_doas": True, "_doas_user": "nobody", "_sudo": True}, 0),
    "a user for sudo, and no sudo": ({"_sudo": False, "_sudo_user": "nobody"}, 0),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others")
@pytest.mark.parametrize(("arguments", "owner"), OWNERS.values(), ids=OWNERS)
def test_a_file_is_written_as_whom_a_command_would_run(
    host: Any, tmp_path: Path, arguments: Any, owner: int
) -> None:
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    tmp_path.chmod(0o777)
    assert host.put_file(io.StringIO("x"), str(tmp_path / "file"), **arguments)
    assert (tmp_path / "file").stat().st_uid == owner


def test_a_timeout_of_a_file_is_what_pyinfra_takes_for_one(host: Any, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError, match="could not write"):
        host.put_file(io.StringIO("x"), str(tmp_path / "file"), _timeout=1e-9)
    with pytest.raises(TimeoutError, match="could not read"):
        host.get_file("/etc/passwd", io.BytesIO(), _timeout=1e-9)
    assert list(tmp_path.iterdir()) == []
