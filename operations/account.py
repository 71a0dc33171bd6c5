"""A system account that a service runs as: nobody logs in with it."""

from collections.abc import Collection, Generator

from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from facts.account import Account, AccountFact, AccountState
from operations.answers import ask
from operations.steps import Refusal, Step, carry_out

SHELL = "/usr/sbin/nologin"
LAST_SYSTEM_UID = 999  # Debian policy 9.2.2; useradd --system stays below it


def plan(
    state: AccountState, user: str, home: str, groups: Collection[str]
) -> list[Step | Refusal]:
    """Return the steps that create the account, or mend what differs of it."""
    absent = sorted(group for group in groups if not state["group_exists"][group])
    if absent:
        return [
            Refusal(
                f"cannot put {user} into {', '.join(absent)}: this host has no such group. "
                "Install what brings it, or take it out of the list of groups."
            )
        ]
    account = state["account"]
    if account is None:
        return [_create(state, user, home, groups)]
    if account["uid"] > LAST_SYSTEM_UID or account["uid"] == 0:
        return [
            Refusal(
                f"the user {user} exists with uid {account['uid']}, wanted a system account "
                f"(1 to {LAST_SYSTEM_UID}): it may be a person's. Rename it or choose another name."
            )
        ]
    return _mend(account, user, home, groups)


def _create(state: AccountState, user: str, home: str, groups: Collection[str]) -> Step:
    """A group of the user's name may have outlived an earlier account: it is used."""
    own = ("--gid", QuoteString(user)) if state["group_exists"][user] else ("--user-group",)
    more = ("--groups", QuoteString(",".join(sorted(groups)))) if groups else ()
    command = StringCommand(
        *("useradd", "--system", *own, *more, "--home-dir", QuoteString(home)),
        *("--no-create-home", "--shell", SHELL, "--", QuoteString(user)),
    )
    return Step(f"the user {user} is missing", command)


def _mend(account: Account, user: str, home: str, groups: Collection[str]) -> list[Step | Refusal]:
    steps: list[Step | Refusal] = []

    def change(reason: str, *options: str) -> None:
        quoted = [QuoteString(option) for option in options]
        steps.append(Step(reason, StringCommand("usermod", *quoted, "--", QuoteString(user))))

    if account["home"] != home:
        change(f"{user}'s home is {account['home']}, wanted {home}", "--home", home)
    if account["shell"] != SHELL:
        change(f"{user}'s shell is {account['shell']}, wanted {SHELL}", "--shell", SHELL)
    if not account["locked"]:
        change(f"{user} has a password, wanted none", "--lock")
    missing = sorted(set(groups) - {*account["groups"], account["group"]})
    if missing:
        wanted = ",".join(missing)
        change(f"{user} is not in {', '.join(missing)}", "--append", "--groups", wanted)
    return steps


@operation()
def present(
    user: str, home: str, groups: Collection[str] = ()
) -> Generator[PyinfraCommand, None, None]:
    """Have a system account with a group of its own, no login shell and no password.

    + user: name of the account and of its group
    + home: its home directory, which is not created here
    + groups: further groups it must be in; memberships beyond these are left alone
    """
    state = ask(AccountFact, user=user, groups=sorted(groups))
    settled = f"{user} is a system account, home {home}"
    yield from carry_out(plan(state, user, home, groups), settled=settled)
