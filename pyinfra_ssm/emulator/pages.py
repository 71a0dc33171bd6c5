"""Pages of a listing. A token is the number of rows already given."""

from collections.abc import Sequence
from typing import TypeVar

from pyinfra_ssm.emulator.errors import ApiError

_T = TypeVar("_T")


def page(
    rows: Sequence[_T], size: int, token: str | None, wrong_token: str
) -> tuple[list[_T], str | None]:
    """Return one page and the token for the next, or None; `wrong_token` is the error's code."""
    if token is not None and not token.isdigit():
        raise ApiError(wrong_token, f"no such token: {token}")
    start = int(token or 0)
    end = start + max(size, 1)
    return list(rows[start:end]), str(end) if end < len(rows) else None
