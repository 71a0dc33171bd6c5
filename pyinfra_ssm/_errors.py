"""What can go wrong, told apart by what the caller can do about it."""


class SSMError(Exception):
    """Any failure of this package; its text is ready to be shown to a person."""


class ProtocolError(SSMError):
    """The peer broke the protocol: this data channel cannot continue, a new one may."""


class ServiceError(SSMError):
    """An API call failed for good. `code` is AWS's, or the name of botocore's exception."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class SessionEnded(SSMError):
    """The session is over. What was asked of it before may or may not have been done."""


class Interrupted(SSMError):
    """The user wants out: nothing is tried again."""


class NotSent(SessionEnded):
    """The session was over before anything of the request had left: asking again is safe."""


class NoProgram(SSMError):
    """The program could not be started on the host: no python3, no sudo, a custom document."""


class HostTimeout(SSMError):
    """The host did not answer in time."""


class RemoteFileError(SSMError):
    """The host could not read or write a file."""

    def __init__(self, text: str, large: int | None = None) -> None:
        super().__init__(text)
        self.large = large  # size in bytes, if it is too large for the way it was asked for


class SecretRefused(SSMError):
    """A secret would have ended up in the account's command history."""
