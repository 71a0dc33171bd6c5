"""Where the program finds itself on the host."""

from __future__ import annotations

import contextlib
import os
import pwd


def settle() -> None:
    """Be as a login over SSH would be: at home, and without sudo's traces in the environment."""
    for name in [name for name in os.environ if name.startswith("SUDO_")]:
        del os.environ[name]
    with contextlib.suppress(KeyError, OSError):
        us = pwd.getpwuid(os.getuid())
        os.environ.update(HOME=us.pw_dir, USER=us.pw_name, LOGNAME=us.pw_name)
        os.chdir(us.pw_dir)
