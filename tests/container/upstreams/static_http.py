"""A folder served on loopback over HTTP, as an apt mirror or a download archive is."""

import functools
import http.server
from pathlib import Path


class _Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not shown: what fails is told by the client."""


class StaticServer(http.server.ThreadingHTTPServer):
    """Serves the files of one folder; a folder without index.html is listed."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), functools.partial(_Quiet, directory=str(folder)))
