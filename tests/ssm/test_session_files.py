"""Files over a session, against the emulated agent; each case is one that has broken a tool."""

import io
import os
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm._errors import HostTimeout, RemoteFileError
from tests.ssm.conftest import Host

NAMES = ["with spaces", "unicode-\u00fc\U0001f680", "-leading-dash", "quote'\"$(id)", "new\nline"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_goes_there_and_back(host: Host, tmp_path: Path, name: str) -> None:
    path, content = tmp_path / name, bytes(range(256)) * 50
    source, sink = tmp_path / "source", tmp_path / "sink"
    source.write_bytes(content)
    with source.open("rb") as file:
        host.transport.put(str(path), file, None)
    assert path.read_bytes() == content
    with sink.open("w+b") as file:
        host.transport.get(str(path), file, None)
    assert sink.read_bytes() == content


@pytest.fixture
def put(host: Host, tmp_path: Path) -> Any:
    """Write bytes to a path of the host."""

    def put(path: Path | str, content: bytes, user: str | None = None) -> None:
        source = tmp_path / "put-source"
        source.write_bytes(content)
        with source.open("rb") as file:
            host.transport.put(str(path), file, user)

    return put


def test_an_empty_file(put: Any, tmp_path: Path) -> None:
    put(tmp_path / "empty", b"")
    assert (tmp_path / "empty").read_bytes() == b""


def test_a_new_file_is_for_its_owner_alone_from_the_first_moment(
    host: Host, put: Any, tmp_path: Path
) -> None:
    put(tmp_path / "secret", b"token")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_replaced_file_keeps_mode_and_owner(put: Any, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("old")
    target.chmod(0o640)
    put(target, b"new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_replaced_file_keeps_its_access_list_and_its_attributes(put: Any, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("old")
    access = [(1, 6, -1), (2, 4, 65534), (4, 4, -1), (16, 4, -1), (32, 0, -1)]  # nobody may read
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in access)
    try:
        os.setxattr(target, "system.posix_acl_access", listed)
        os.setxattr(target, "user.note", b"mine")
    except OSError as error:
        pytest.skip(f"the file system of {tmp_path} has none: {error}")
    put(target, b"new")
    assert target.read_text() == "new"
    assert os.getxattr(target, "system.posix_acl_access") == listed
    assert os.getxattr(target, "user.note") == b"mine"


def test_a_replaced_file_stays_setuid(put: Any, tmp_path: Path) -> None:
    target = tmp_path / "kept"
    target.write_text("old")
    target.chmod(0o4755)
    put(target, b"new")
    assert target.stat().st_mode & 0o7777 == 0o4755


def test_a_file_that_its_owner_may_write_but_not_replace_is_written(
    put: Any, tmp_path: Path
) -> None:
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    target = tmp_path / "theirs"
    target.write_text("old and longer")
    os.chown(target, 65534, 65534)
    put(target, b"new", user="nobody")
    assert target.read_text() == "new"
    assert target.stat().st_uid == 65534
    assert {path.name for path in tmp_path.iterdir()} == {"put-source", "theirs"}


def test_a_user_writes_nothing_that_the_user_may_not(put: Any, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    (tmp_path / "ours").write_text("old")
    (tmp_path / "ours").chmod(0o644)
    for name in ("ours", "new"):
        with pytest.raises(RemoteFileError, match="Permission denied"):
            put(tmp_path / name, b"x", user="nobody")
    assert (tmp_path / "ours").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"put-source", "ours"}


def test_a_link_is_written_through(put: Any, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    put(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_file_written_for_another_user_is_theirs(put: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    put(tmp_path / "theirs", b"x", user="nobody")
    assert (tmp_path / "theirs").stat().st_uid == 65534


REFUSED = {
    "a folder": ("", "directory"),
    "in a folder that is not there": ("none/file", "No such file"),
    "a folder that is not there": ("none/", "Is a directory"),
    "a link to itself": ("loop", "Too many levels"),
}


@pytest.mark.parametrize(("name", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_written_says_why_and_leaves_nothing(
    put: Any, tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(RemoteFileError, match=said):
        put(f"{tmp_path}/{name}", b"x")
    assert {path.name for path in tmp_path.iterdir()} - {path.name for path in before} <= {
        "put-source"
    }


def test_an_unknown_user_is_named(put: Any, tmp_path: Path) -> None:
    with pytest.raises(RemoteFileError, match="no-such-user"):
        put(tmp_path / "x", b"x", user="no-such-user")


def test_a_file_that_is_not_there_is_an_error(host: Host, tmp_path: Path) -> None:
    with (tmp_path / "sink").open("w+b") as sink, pytest.raises(RemoteFileError, match="No such"):
        host.transport.get("/no/such", sink, None)


def test_a_file_that_says_it_is_empty_is_read_to_its_end(host: Host, tmp_path: Path) -> None:
    with (tmp_path / "sink").open("w+b") as sink:
        host.transport.get("/proc/version", sink, None)
    assert (tmp_path / "sink").read_bytes() == Path("/proc/version").read_bytes()


def test_a_full_file_system_is_an_error_and_its_file_as_before(put: Any, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(full)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system may be mounted here")
    try:
        (full / "old").write_text("old")
        for name in ("old", "new"):
            with pytest.raises(RemoteFileError, match="No space left"):
                put(full / name, random.Random(1).randbytes(1_000_000))
        assert [path.name for path in full.iterdir()] == ["old"]
        assert (full / "old").read_text() == "old"
    finally:
        subprocess.run(["umount", str(full)], check=True)


def test_a_file_that_takes_longer_than_its_limit_is_left_as_it_was(
    host: Host, tmp_path: Path
) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(HostTimeout, match=r"within 1e-09 s"):
        host.transport.put(str(tmp_path / "old"), io.BytesIO(b"new"), None, 1e-9)
    with pytest.raises(HostTimeout):
        host.transport.get(str(tmp_path / "old"), io.BytesIO(), None, 1e-9)
    assert host.run("echo still here")[1] == b"still here\n"
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_a_user_reads_nothing_that_the_user_may_not(host: Host, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    (tmp_path / "ours").write_text("secret")
    (tmp_path / "ours").chmod(0o600)
    sink = io.BytesIO()
    with pytest.raises(RemoteFileError, match="Permission denied"):
        host.transport.get(str(tmp_path / "ours"), sink, "nobody")
    assert sink.getvalue() == b""


def test_a_large_file_of_random_bytes_goes_there_and_back(
    host: Host, put: Any, tmp_path: Path
) -> None:
    content = random.Random(1).randbytes(3_000_000)
    put(tmp_path / "large", content)
    with (tmp_path / "sink").open("w+b") as sink:
        host.transport.get(str(tmp_path / "large"), sink, None)
    assert (tmp_path / "sink").read_bytes() == content


def test_no_temporary_file_is_left(host: Host, put: Any, tmp_path: Path) -> None:
    put(tmp_path / "a", b"x")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "put-source"}
