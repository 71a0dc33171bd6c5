"""Sessions on hosts that print what they like, are slow, or forbid what is usual."""

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pyinfra_ssm._errors import NoProgram
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import Ending
from pyinfra_ssm.emulator import DEFAULT_ID, Instance
from tests.ssm.conftest import OPTIONS, Emulate, Host, Start, account

BANNERS = "printf 'Welcome to \\033[?2004h\\036\\036 Ubuntu\\r\\n$ '; "


def test_banners_and_bracketed_paste_before_the_start_are_passed_over(emulate: Emulate) -> None:
    document = {
        "schemaVersion": "1.0",
        "sessionType": "InteractiveCommands",
        "parameters": {"command": {"type": "String"}},
        "properties": {"linux": {"commands": BANNERS + "{{command}}", "runAsElevated": True}},
    }
    emulator = emulate(documents={"With-Banner": document})
    options = OPTIONS.__class__("With-Banner", OPTIONS.bulk_document, OPTIONS.python, 0)
    transport = SessionTransport(account(), DEFAULT_ID, options)
    transport.open()
    try:
        assert Host(emulator, transport).run("echo sound")[1] == b"sound\n"
    finally:
        transport.close()


def test_nothing_needs_a_folder_for_temporary_files(emulate: Emulate, tmp_path: Path) -> None:
    emulator = emulate([Instance(environment={"TMPDIR": "/no/such/folder"})])
    transport = SessionTransport(account(), DEFAULT_ID, OPTIONS)
    transport.open()
    try:
        host = Host(emulator, transport)
        assert host.run("echo x")[1] == b"x\n"
        host.transport.put(str(tmp_path / "file"), io.BytesIO(b"y"), None)
        assert (tmp_path / "file").read_bytes() == b"y"
    finally:
        transport.close()


@pytest.mark.parametrize("fault", ["terminal_delay_s", "start_delay_s"])
def test_a_host_that_takes_its_time_to_start_is_waited_for(start: Start, fault: str) -> None:
    assert start(**{fault: 1.5}).run("echo up")[1] == b"up\n"


NOEXEC = """exec 3<<'@'
{{command}}
@
exec unshare -m sh -c 'mount -t tmpfs -o noexec tmpfs /tmp && exec sh /dev/fd/3'"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_nothing_needs_tmp_to_be_executable(emulate: Emulate) -> None:
    document = {
        "schemaVersion": "1.0",
        "sessionType": "InteractiveCommands",
        "parameters": {"command": {"type": "String"}},
        "properties": {"linux": {"commands": NOEXEC, "runAsElevated": True}},
    }
    emulator = emulate(documents={"With-Noexec": document})
    transport = SessionTransport(account(), DEFAULT_ID, replace(OPTIONS, document="With-Noexec"))
    try:
        transport.open()
    except NoProgram as error:
        pytest.skip(f"no file system may be mounted here: {error}")
    try:
        host = Host(emulator, transport)
        script = "echo 'echo ran' >/tmp/script; chmod +x /tmp/script; /tmp/script"
        assert host.run(script)[0] == Ending(126)  # it is as it should be
        assert host.run("echo x", stdin=b"y")[1] == b"x\n"
        host.transport.put("/tmp/file", io.BytesIO(b"y"), None)
        assert host.run("cat /tmp/file")[1] == b"y"
        assert host.run(f": {'y' * 200_000}; echo long")[1] == b"long\n"
    finally:
        transport.close()
