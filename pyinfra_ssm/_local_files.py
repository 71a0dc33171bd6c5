"""This machine's end of a file: what pyinfra names or hands over, as bytes to read or to write."""

import contextlib
import io
import shutil
import tempfile
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, cast

from pyinfra.api.util import get_file_io

# Bytes of a download that are held in memory; more goes to a file without a name.
_IN_MEMORY = 8 << 20


@contextlib.contextmanager
def reading(filename_or_io: Any) -> Iterator[BinaryIO]:
    """Give the content to send; a file that was opened as text is read as the bytes it is of."""
    with get_file_io(filename_or_io) as source:
        if isinstance(source, io.TextIOBase):
            yield getattr(source, "buffer", None) or io.BytesIO(source.read().encode())
        else:
            yield source


@contextlib.contextmanager
def writing(filename_or_io: Any) -> Iterator[BinaryIO]:
    """Take content that comes; only when all of it is there is the local file touched."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as content:
        yield cast(BinaryIO, content)
        content.seek(0)
        with get_file_io(filename_or_io, "wb") as sink:
            if isinstance(sink, io.TextIOBase):
                sink.write(content.read().decode("utf-8", "replace"))
            else:
                shutil.copyfileobj(cast(IO[bytes], content), sink)
