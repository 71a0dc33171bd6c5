"""Commands and files over Run Command, against the emulated agent and its limits."""

import io
import os
import pwd
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm._account import Waiting
from pyinfra_ssm._errors import Interrupted, RemoteFileError, SecretRefused, ServiceError, SSMError
from pyinfra_ssm._run_command import RunCommandTransport
from pyinfra_ssm._session import real_waiting
from pyinfra_ssm._transport import Ending, Request
from pyinfra_ssm.emulator import DEFAULT_ID, Emulator, Instance
from tests.ssm.conftest import Emulate, Host, account


@pytest.fixture(scope="module")
def host(shared_emulator: Emulator) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shared_emulator.environment.items():
            patch.setenv(name, value)
        transport = RunCommandTransport(account(), DEFAULT_ID, real_waiting, False)
        transport.open()
        yield Host(shared_emulator, transport)


OUTPUTS = {
    "without a trailing newline": ("printf abc", b"abc"),
    "nothing": ("true", b""),
    "quotes and dollars": ("printf '%s' '\"$HOME\" `x` \\n'", b'"$HOME" `x` \\n'),
    "a line that would end a here-document": ("printf '@\\n'; echo after", b"@\nafter\n"),
    "bytes that are not UTF-8": ("printf 'tail\\377\\376\\000'", b"tail\xff\xfe\0"),
}


@pytest.mark.parametrize(("command", "output"), OUTPUTS.values(), ids=OUTPUTS)
def test_output_comes_as_it_was_written(host: Host, command: str, output: Any) -> None:
    assert host.run(command) == (Ending(0), output, b"")


def test_streams_and_status(host: Host) -> None:
    assert host.run("echo out; echo err >&2; exit 3") == (Ending(3), b"out\n", b"err\n")


def test_a_command_without_input_reads_end_of_file(host: Host) -> None:
    assert host.run("cat; echo done")[1] == b"done\n"


def test_a_command_is_at_home(host: Host) -> None:
    us = pwd.getpwuid(os.getuid())
    stdout = host.run('echo "$HOME $USER $LOGNAME"; pwd')[1].decode()
    assert stdout == f"{us.pw_dir} {us.pw_name} {us.pw_name}\n{us.pw_dir}\n"


def test_output_beyond_the_limit_is_fetched_in_pieces(host: Host, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(60_000)
    (tmp_path / "large").write_bytes(content)
    ending, stdout, stderr = host.run(f"cat {tmp_path}/large; head -c 30000 {tmp_path}/large >&2")
    assert (ending, stdout, stderr) == (Ending(0), content, content[:30_000])


@pytest.mark.parametrize("size", [22_999, 23_000, 24_000, 24_001])
def test_output_at_the_limits_of_an_answer(host: Host, size: int) -> None:
    assert host.run(f"head -c {size} /dev/zero | tr '\\0' x")[1] == b"x" * size
    assert host.run(f"head -c {size} /dev/zero | tr '\\0' x >&2")[2] == b"x" * size


def test_packed_output_at_the_limits_of_an_answer(host: Host, tmp_path: Path) -> None:
    """Random bytes do not compress: their base64 crosses the limit between two pieces."""
    for size in (17_190, 17_230, 17_250, 18_000):
        content = random.Random(size).randbytes(size)
        (tmp_path / "file").write_bytes(content)
        assert host.run(f"cat {tmp_path}/file")[1] == content


def test_a_command_beyond_the_limit_of_its_document_is_sent_in_pieces(host: Host) -> None:
    text = random.Random(1).randbytes(60_000).hex()
    assert host.run(f"printf %s {text} | wc -c")[1].split() == [b"120000"]


def test_a_deadline_ends_the_command(host: Host) -> None:
    ending, stdout, _ = host.run("echo begun; sleep 1000", timeout=1.0)
    assert (ending.timed_out, stdout) == (True, b"begun\n")


def test_a_status_of_124_is_not_taken_for_a_deadline(host: Host) -> None:
    assert host.run("exit 124") == (Ending(124), b"", b"")


@pytest.mark.parametrize("status", [124, 137])
def test_a_status_like_a_deadlines_within_the_deadline_is_a_status(host: Host, status: int) -> None:
    assert host.run(f"exit {status}", timeout=60.0) == (Ending(status), b"", b"")


def test_a_command_on_a_terminal_sees_one(host: Host) -> None:
    assert host.run("test -t 1 && echo yes", terminal=True)[1].strip() == b"yes"


def test_nothing_is_left_on_the_host(emulate: Emulate, tmp_path: Path) -> None:
    emulate([Instance(environment={"TMPDIR": str(tmp_path)})])
    transport = RunCommandTransport(account(), DEFAULT_ID, real_waiting, False)
    transport.run(Request("ls -a $TMPDIR; head -c 100000 /dev/urandom"), lambda *_: None)
    transport.run(Request(f": {random.Random(1).randbytes(40_000).hex()}"), lambda *_: None)
    transport.put(str(tmp_path / "file"), io.BytesIO(b"x" * 100), None)
    with pytest.raises(RemoteFileError):
        transport.put(str(tmp_path), io.BytesIO(b"x"), None)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# Secrets


def test_a_secret_is_refused_since_the_history_keeps_it(host: Host) -> None:
    for request in (Request("echo x", has_secret=True), Request("cat", b"x", has_secret=True)):
        with pytest.raises(SecretRefused, match="history"):
            host.transport.run(request, lambda *_: None)


def test_a_knob_lets_secrets_through(host: Host, shared_emulator: Emulator) -> None:
    trusting = RunCommandTransport(account(), DEFAULT_ID, real_waiting, True)
    output = []
    ending = trusting.run(
        Request("cat", b"line\n", has_secret=True), lambda _, data: output.append(data)
    )
    assert (ending, output) == (Ending(0), [b"line\n"])


# Files


@pytest.mark.parametrize("name", ["with spaces", "unicode-\u00fc", "-dash", "quote'\"$(id)"])
def test_a_file_goes_there_and_back(host: Host, tmp_path: Path, name: str) -> None:
    content = random.Random(2).randbytes(100_000)
    path = str(tmp_path / name)
    host.transport.put(path, io.BytesIO(content), None)
    assert (tmp_path / name).read_bytes() == content
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    sink = io.BytesIO()
    host.transport.get(path, sink, None)
    assert sink.getvalue() == content
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_replaced_file_keeps_its_mode(host: Host, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("old")
    target.chmod(0o640)
    host.transport.put(str(target), io.BytesIO(b""), None)
    assert target.read_bytes() == b""
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_replaced_file_stays_setuid(host: Host, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("old")
    target.chmod(0o4755)
    host.transport.put(str(target), io.BytesIO(b"new"), None)
    assert target.stat().st_mode & 0o7777 == 0o4755


def test_a_link_to_itself_is_left_alone(host: Host, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RemoteFileError, match="link to itself"):
        host.transport.put(str(tmp_path / "loop"), io.BytesIO(b"x"), None)


@pytest.mark.parametrize("name", ["fifo", "folder/", "new/"])
def test_what_is_no_file_is_left_alone(host: Host, tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RemoteFileError, match=r"is a directory|is not a regular file"):
        host.transport.put(f"{tmp_path}/{name}", io.BytesIO(b"x"), None)
    assert (tmp_path / "fifo").is_fifo()
    assert {path.name for path in tmp_path.iterdir()} == {"fifo", "folder"}


def test_a_replaced_file_keeps_its_access_list(host: Host, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("old")
    access = [(1, 6, -1), (2, 4, 65534), (4, 4, -1), (16, 4, -1), (32, 0, -1)]  # nobody may read
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in access)
    try:
        os.setxattr(target, "system.posix_acl_access", listed)
    except OSError as error:
        pytest.skip(f"the file system of {tmp_path} has none: {error}")
    host.transport.put(str(target), io.BytesIO(b"new"), None)
    assert target.read_bytes() == b"new"
    assert os.getxattr(target, "system.posix_acl_access") == listed


def test_a_relative_name_is_one_at_home(emulate: Emulate, tmp_path: Path) -> None:
    emulate([Instance(environment={"HOME": str(tmp_path)})])
    transport = RunCommandTransport(account(), DEFAULT_ID, real_waiting, False)
    transport.put("file", io.BytesIO(b"x"), None)
    assert (tmp_path / "file").read_bytes() == b"x"
    sink = io.BytesIO()
    transport.get("file", sink, None)
    assert sink.getvalue() == b"x"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become others")
def test_a_user_writes_only_what_the_user_may(host: Host, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    (tmp_path / "theirs").write_text("old")
    os.chown(tmp_path / "theirs", 65534, 65534)
    host.transport.put(str(tmp_path / "theirs"), io.BytesIO(b"new"), "nobody")
    assert (tmp_path / "theirs").read_bytes() == b"new"
    (tmp_path / "ours").write_text("old")
    for name in ("ours", "new"):
        with pytest.raises(RemoteFileError, match="Permission denied"):
            host.transport.put(str(tmp_path / name), io.BytesIO(b"x"), "nobody")
    assert (tmp_path / "ours").read_text() == "old"
    tmp_path.chmod(0o777)
    host.transport.put(str(tmp_path / "new"), io.BytesIO(b"x"), "nobody")
    assert (tmp_path / "new").stat().st_uid == 65534


def test_what_has_no_end_is_not_read(host: Host, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(RemoteFileError, match="not a regular file"):
        host.transport.get(str(tmp_path / "fifo"), io.BytesIO(), None)


def test_what_cannot_be_written_or_read_says_why(host: Host, tmp_path: Path) -> None:
    with pytest.raises(RemoteFileError, match=rf"\A{tmp_path} is a directory\Z"):
        host.transport.put(str(tmp_path), io.BytesIO(b"x"), None)
    with pytest.raises(SSMError, match="NUL"):
        host.transport.put(str(tmp_path / "a\0b"), io.BytesIO(b"x"), None)
    with pytest.raises(RemoteFileError, match="No such file"):
        host.transport.put(str(tmp_path / "none" / "file"), io.BytesIO(b"x"), None)
    with pytest.raises(RemoteFileError, match="No such file"):
        host.transport.get(str(tmp_path / "none"), io.BytesIO(), None)


# The service


def test_an_invocation_that_is_not_known_yet_is_waited_for_and_the_first_ending_counts(
    emulate: Emulate,
) -> None:
    emulator = emulate(invocation_missing=3, late_in_progress=True)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        real_waiting.sleep(0.05)  # the host needs some time, whatever we make of it

    transport = RunCommandTransport(account(), DEFAULT_ID, Waiting(sleep, lambda: 1.0), False)
    transport.open()
    assert len(slept) >= 3
    assert slept == sorted(slept)
    assert len([call for call in emulator.calls if call["action"] == "SendCommand"]) == 1


def test_an_interrupt_lets_go_of_a_command_that_goes_on(emulate: Emulate, tmp_path: Path) -> None:
    emulate([Instance(environment={"TMPDIR": str(tmp_path)})])
    waiting = Waiting(lambda _: transport.abandon(), lambda: 1.0)
    transport = RunCommandTransport(account(), DEFAULT_ID, waiting, False)
    with pytest.raises(Interrupted):
        transport.run(Request("sleep 1000"), lambda *_: None)


def test_an_invocation_that_is_never_known_is_given_up(emulate: Emulate) -> None:
    emulate(invocation_missing=1000)
    transport = RunCommandTransport(account(), DEFAULT_ID, Waiting(lambda _: None, float), False)
    with pytest.raises(ServiceError, match="ssm:GetCommandInvocation failed"):
        transport.open()


def test_a_host_without_the_tools_is_refused(emulate: Emulate, tmp_path: Path) -> None:
    for tool in ("sh", "env", "gzip"):
        (tmp_path / tool).symlink_to(f"/bin/{tool}")
    emulate([Instance(environment={"PATH": str(tmp_path)})])
    transport = RunCommandTransport(account(), DEFAULT_ID, real_waiting, False)
    with pytest.raises(RemoteFileError, match="the host has no base64 mktemp realpath"):
        transport.open()
