"""One account for all hosts that share a profile and a region: its clients cost time and memory."""

import functools
import hashlib
import os

from pyinfra_ssm._account import Account
from pyinfra_ssm._session import new_lock, real_waiting

_lock = new_lock()


def account_of(profile: str | None, region: str | None) -> Account:
    """Return the account that all hosts with this profile and region share."""
    settings = sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))
    return _account(profile, region, hashlib.sha256(repr(settings).encode()).hexdigest())


@functools.cache
def _account(profile: str | None, region: str | None, _environment: str) -> Account:
    return Account(profile, region, real_waiting, _lock)
