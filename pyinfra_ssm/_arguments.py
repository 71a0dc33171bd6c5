"""What pyinfra's global arguments mean for a request; pure."""

import posixpath
from collections.abc import Mapping
from typing import Any

from pyinfra.api.command import StringCommand

from pyinfra_ssm._output import stdin_bytes
from pyinfra_ssm._transport import Request


def request_of(command: StringCommand, control: Mapping[str, Any]) -> Request:
    """Return what is asked of the host; a command whose shown form differs holds a secret."""
    raw, stdin = command.get_raw_value(), stdin_bytes(control.get("_stdin"))
    return Request(
        raw,
        stdin,
        timeout=control.get("_timeout") or None,
        terminal=bool(control.get("_get_pty")),
        has_secret=raw != str(command) or bool(stdin),
    )


def path_of(name: str, arguments: Mapping[str, Any]) -> str:
    """Return what a remote name is relative to pyinfra's `_chdir`; without, it is to the home."""
    return posixpath.join(arguments.get("_chdir") or "", name)


def user_of(arguments: Mapping[str, Any]) -> str | None:
    """Return whom pyinfra's arguments make the owner of what is written; None is root.

    Their order in a command line is doas, dzdo, sudo, su: the last one counts.
    """
    if arguments.get("_su_user"):
        return str(arguments["_su_user"])
    way = next((way for way in ("sudo", "dzdo", "doas") if arguments.get(f"_{way}")), "")
    return arguments.get(f"_{way}_user") or None
