"""A stand-in for EC2's metadata service that tells of a spot interruption, or of none."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.loopback import serving, url

NOTICE = '{"action": "terminate", "time": "2026-11-30T13:05:00Z"}'


@dataclass
class Metadata:
    """The metadata service, version 2 alone: no token, no answer."""

    notice: str = ""
    token_status: int = 200
    asked: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def metadata_service() -> Iterator[Metadata]:
    """Serve on a port of the kernel's choice while the block lasts."""
    held = Metadata()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_PUT(self) -> None:
            held.asked.append(self.path)
            self._answer(held.token_status, "a-token")

        def do_GET(self) -> None:
            held.asked.append(self.path)
            if self.headers["X-aws-ec2-metadata-token"] != "a-token":
                self._answer(401, "")
            else:
                self._answer(200 if held.notice else 404, held.notice)

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        held.url = url(server)
        yield held
