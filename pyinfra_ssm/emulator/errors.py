"""Errors of the emulated API, in the shapes that botocore reads."""


class ApiError(Exception):
    """What an API call fails with: the code that botocore shows, a text, the HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
