"""Starting a session so that it is ended whatever happens before somebody holds it."""

import contextlib
from collections.abc import Iterator, Mapping

from pyinfra_ssm import _leaving
from pyinfra_ssm._account import Account, Opening
from pyinfra_ssm._errors import Interrupted, SSMError
from pyinfra_ssm._session import new_lock

# Seconds that a process on its way out gives StartSession to answer. Until then nobody knows the
# id of the session, and so nobody can end it.
_PATIENCE = 5.0


class _Call:
    """A call of StartSession that is under way."""

    def __init__(self) -> None:
        self.is_abandoned = False
        self._under_way = new_lock()
        self._under_way.acquire()

    def abandon(self) -> None:
        self.is_abandoned = True

    def close(self) -> None:
        """Wait for the end: whoever made the call then ends what it started."""
        self._under_way.acquire(timeout=_PATIENCE)

    def end(self) -> None:
        self._under_way.release()


@contextlib.contextmanager
def started(
    account: Account, target: str, document: str, parameters: Mapping[str, list[str]]
) -> Iterator[Opening]:
    """Start a session for the block to take up; if the block fails, the session is ended."""
    if _leaving.is_going():
        raise Interrupted("interrupted")
    call = _Call()
    _leaving.register(call)
    try:
        opening = account.start_session(target, document, parameters)
        try:
            if call.is_abandoned:
                raise Interrupted("interrupted")
            yield opening
        except BaseException:
            with contextlib.suppress(SSMError):
                account.terminate_session(opening.session_id)
            raise
    finally:
        _leaving.unregister(call)
        call.end()
