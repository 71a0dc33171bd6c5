"""Why our program did not start on a host, from what the host printed instead; pure."""

_SUDO_ASKS = (
    "sudo wants a password there. Let the session's user run sudo without one, or name a session "
    "document with runAsElevated in ssm_document."
)
_NO_PYTHON = "Install python3, or name its path in ssm_python, or set ssm_transport to run-command."
# Sign in what the host said -> remedy; the first that fits.
_REMEDIES = {
    "password is required": _SUDO_ASKS,
    "authentication is required": _SUDO_ASKS,
    "not in the sudoers": "The session's user may not use sudo. Give it a NOPASSWD rule, or name a "
    "session document with runAsElevated in ssm_document.",
    "sudo: not found": "There is no sudo. Install it, or name a session document with "
    "runAsElevated in ssm_document, or set ssm_transport to run-command.",
    "not found": _NO_PYTHON,
    "No such file": _NO_PYTHON,
}


def explain_start(ending: str, noise: str) -> str:
    """Return why the program did not start, and the remedy; `ending` is what became of it."""
    said = " ".join(noise.split())[-400:]
    remedy = next((text for sign, text in _REMEDIES.items() if sign in said), "")
    shown = f'; the host said "{said}"' if said else ""
    return (
        f"could not start our program in a session: {ending.rstrip('.')}{shown}. {remedy}".rstrip()
    )
