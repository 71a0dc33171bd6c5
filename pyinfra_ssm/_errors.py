"""What can go wrong, told apart by what the caller can do about it."""


class SSMError(Exception):
    """Any failure of this package; its text is ready to be shown to a person."""


class ProtocolError(SSMError):
    """The peer broke the protocol: this data channel cannot continue, a new one may."""
