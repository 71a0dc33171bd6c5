"""Files of the host: written beside their target and renamed, read with a digest."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pwd
import stat
from collections.abc import Iterator
from typing import Any

from pyinfra_ssm.remote.framing import CHUNK


@contextlib.contextmanager
def acting_as(user: str | None) -> Iterator[None]:
    """Give up root for the length of the block; every check of the kernel is then that user's."""
    if not user or os.geteuid() != 0:
        yield
        return
    entry, groups = pwd.getpwnam(user), os.getgroups()
    os.setgroups(os.getgrouplist(user, entry.pw_gid))
    os.setegid(entry.pw_gid)
    os.seteuid(entry.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


class Incoming:
    """A file on its way in. Until finish() its target is untouched; abandon() leaves nothing."""

    def __init__(self, request: dict[str, Any]) -> None:
        """`request` has path, and may have user (who writes it and owns it if it is new)."""
        self._user = request.get("user")
        self._digest = hashlib.sha256()
        self._size = 0
        path = os.fsencode(request["path"])
        if not os.path.basename(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        with acting_as(self._user):
            self._target = os.path.realpath(path)  # through a link, as cp
            self._before = _regular(self._target)
        name = b".pyinfra-ssm-" + os.urandom(8).hex().encode()
        self._temporary = os.path.join(os.path.dirname(self._target), name)
        self._fd, self._in_place = self._open()

    def _open(self) -> tuple[int, bool]:
        """Return the temporary file, and whether it cannot take the place of the target.

        A user may own a file in a folder where it may make none: then the file is beside it all
        the same, made by root, and the user writes its content over the target.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with acting_as(self._user):
                return os.open(self._temporary, flags, 0o600), False  # from the first moment
        except PermissionError:
            if self._before is None:
                raise
        with acting_as(self._user):
            os.close(os.open(self._target, os.O_WRONLY | os.O_CLOEXEC))
        return os.open(self._temporary, flags, 0o600), True

    def write(self, data: bytes) -> None:
        self._digest.update(data)
        self._size += len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def finish(self, size: int, digest: str) -> None:
        """Put the file in its place, if it is what was sent."""
        if (size, digest) != (self._size, self._digest.hexdigest()):
            raise OSError(errno.EIO, "content was damaged on its way", self._target)
        with acting_as(self._user):
            os.fsync(self._fd)
            if self._in_place or not self._replace():
                self._overwrite()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)
        os.close(self._fd)

    def abandon(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._fd)
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)

    def _replace(self) -> bool:
        """Put the new file in the place of the old one, if that works."""
        try:
            if self._before is not None:
                self._adopt(self._before)
            os.rename(self._temporary, self._target)
        except OSError as error:
            # A mount point, as /etc/hosts in a container; or a file of another owner, which
            # this user may write to but not give away.
            if error.errno not in (errno.EBUSY, errno.EPERM):
                raise
            return False
        return True

    def _adopt(self, before: os.stat_result) -> None:
        """Take over owner, mode, access list and labels. Capabilities end with a write, too."""
        ours = os.fstat(self._fd)
        if (before.st_uid, before.st_gid) != (ours.st_uid, ours.st_gid):
            os.fchown(self._fd, before.st_uid, before.st_gid)
        os.fchmod(self._fd, stat.S_IMODE(before.st_mode))
        with contextlib.suppress(OSError):  # not every file system has them
            for name in os.listxattr(self._target):
                if name != "security.capability":
                    os.setxattr(self._fd, name, os.getxattr(self._target, name))

    def _overwrite(self) -> None:
        os.lseek(self._fd, 0, os.SEEK_SET)
        with open(self._target, "wb") as target:
            for data in iter(lambda: os.read(self._fd, CHUNK), b""):
                target.write(data)


class Outgoing:
    """A file on its way out: read() until it gives b"", then ending()."""

    def __init__(self, request: dict[str, Any]) -> None:
        """`request` has path, and may have user (who reads it)."""
        with acting_as(request.get("user")):
            path = os.fsencode(request["path"])
            if _regular(path) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self._file = open(path, "rb", buffering=0)  # noqa: SIM115  closed by close()
        self.size = os.fstat(self._file.fileno()).st_size
        self._digest = hashlib.sha256()
        self._read = 0

    def read(self) -> bytes:
        data = self._file.read(CHUNK)
        self._digest.update(data)
        self._read += len(data)
        return data

    def ending(self) -> dict[str, Any]:
        """Return the size and SHA-256 of what was read, whatever the file has become since."""
        return {"size": self._read, "sha256": self._digest.hexdigest()}

    def close(self) -> None:
        self._file.close()


def describe_failure(error: Exception) -> dict[str, Any]:
    """Return the body of a FAILED frame. Paths are left out: whoever asked knows which it was."""
    if isinstance(error, OSError):
        return {"text": error.strerror or str(error)}
    if isinstance(error, KeyError):  # whose text is in quotes
        return {"text": str(error.args[0])}
    return {"text": str(error) or repr(error)}


def _regular(path: bytes) -> os.stat_result | None:
    """Return what a regular file is like, None if there is none; anything else is an OSError."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return found
