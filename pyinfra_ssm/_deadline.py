"""The time that is left for a request of several steps."""

from pyinfra_ssm._errors import HostTimeout
from pyinfra_ssm._session import monotonic


class Deadline:
    """So many seconds from now, or None for as long as it takes."""

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self._end = None if limit is None else monotonic() + limit

    def left(self, most: float | None = None) -> float | None:
        """Return the seconds that are left, at most `most`; raises HostTimeout if there are none.

        None is no limit.
        """
        if self._end is None:
            return most
        left = self._end - monotonic()
        if left <= 0:
            raise HostTimeout(f"it was not over within {self._limit:g} s")
        return left if most is None else min(left, most)
