"""What is known of a user account."""

from collections.abc import Collection
from typing import TypedDict

from pyinfra.api import FactBase, StringCommand

from facts.script import answer, program


class Account(TypedDict):
    """One account; `locked`: no password can match."""

    uid: int
    group: str  # its primary group
    home: str
    shell: str
    groups: list[str]  # supplementary ones
    locked: bool


class AccountState(TypedDict):
    """The answer of files/facts/account.py."""

    account: Account | None  # None: there is no such user
    group_exists: dict[str, bool]  # of the groups asked about


class AccountFact(FactBase[AccountState]):
    """One user account, and which of some groups exist."""

    def command(self, user: str, groups: Collection[str]) -> StringCommand:
        return program("account.py", user, *sorted({user, *groups}))

    def process(self, output: list[str]) -> AccountState:
        state: AccountState = answer(output)
        return state
