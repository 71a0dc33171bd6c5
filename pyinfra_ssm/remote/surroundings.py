"""Where the program finds itself on the host."""

from __future__ import annotations

import contextlib
import os
import pwd


def step_aside() -> None:
    """Go on in a child with a session of its own, whose end this process waits for.

    The agent ends a session by SIGKILL for the process that it has started, then closes the
    terminal, and sudo gives what runs below it no time either once it is killed itself (seen with
    1.9.13 and use_pty): nobody would be left to end the commands. Neither reaches another session,
    which learns of the end from the terminal.
    https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/shell/shell.go
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    os.setsid()


def settle() -> None:
    """Be as a login over SSH would be: at home, and without sudo's traces in the environment."""
    for name in [name for name in os.environ if name.startswith("SUDO_")]:
        del os.environ[name]
    with contextlib.suppress(KeyError, OSError):
        us = pwd.getpwuid(os.getuid())
        os.environ.update(HOME=us.pw_dir, USER=us.pw_name, LOGNAME=us.pw_name)
        os.chdir(us.pw_dir)
