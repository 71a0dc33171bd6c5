"""File content as it arrives from the host, checked against what the host says it sent."""

import hashlib
from typing import BinaryIO

from pyinfra_ssm._errors import RemoteFileError
from pyinfra_ssm._host_program import read_json
from pyinfra_ssm.remote.framing import Frame


class Arriving:
    """Writes to `sink` from where it stands; each attempt starts there anew."""

    def __init__(self, path: str, sink: BinaryIO) -> None:
        self._path, self._sink, self._start = path, sink, sink.tell()
        self._digest, self._size = hashlib.sha256(), 0

    def restart(self) -> None:
        self._sink.seek(self._start)
        self._sink.truncate()
        self._digest, self._size = hashlib.sha256(), 0

    def add(self, data: bytes) -> None:
        self._digest.update(data)
        self._size += len(data)
        self._sink.write(data)

    def check(self, ending: Frame) -> None:
        """Raise RemoteFileError unless size and SHA-256 in `ending` are those of what came."""
        if read_json(ending) != {"size": self._size, "sha256": self._digest.hexdigest()}:
            raise RemoteFileError(f"{self._path} was damaged on its way: {self._size} bytes came")
