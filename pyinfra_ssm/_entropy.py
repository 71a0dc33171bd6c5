"""Random bytes from the operating system, fetched by the page: a frame needs twenty of them."""

import os
from uuid import UUID

_PAGE = 4096


class Entropy:
    """Call it for random bytes. One caller at a time."""

    def __init__(self) -> None:
        self._page, self._at = b"", _PAGE

    def __call__(self, size: int) -> bytes:
        """Return `size` bytes, at most a page; none is ever given twice."""
        if self._at + size > _PAGE:
            self._page, self._at = os.urandom(_PAGE), 0
        self._at += size
        return self._page[self._at - size : self._at]

    def uuid(self) -> UUID:
        """Return a random (version 4) UUID."""
        return UUID(bytes=self(16), version=4)
