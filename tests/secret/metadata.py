"""A stand-in for EC2's instance metadata service, second version, and for a service that fails."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.loopback import serving, url

SESSION = "session-of-this-test"
KEYS = {
    "Code": "Success",
    "AccessKeyId": "ASIAEXAMPLE",
    "SecretAccessKey": "example/secret+key",
    "Token": "example//token==",
}


@dataclass
class Metadata:
    """What the service tells. It refuses whoever has no session token, as with HttpTokens=required.

    Field names follow the service's own documents.
    """

    role: str | None = "vllm-host"
    keys: dict[str, str] = field(default_factory=lambda: dict(KEYS))
    enabled: bool = True
    url: str = ""


@contextmanager
def metadata_service() -> Iterator[Metadata]:
    """Serve on a port of the kernel's choice while the block lasts."""
    told = Metadata()

    class Handler(_Quiet):
        def do_PUT(self) -> None:
            ttl = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
            if not told.enabled:
                self.answer(403, "")
            elif self.path == "/latest/api/token" and ttl:
                self.answer(200, SESSION)
            else:
                self.answer(400, "")

        def do_GET(self) -> None:
            base = "/latest/meta-data/iam/security-credentials/"
            if self.headers.get("X-aws-ec2-metadata-token") != SESSION:
                self.answer(401, "")
            elif told.role and self.path == base:
                self.answer(200, told.role)
            elif told.role and self.path == base + told.role:
                self.answer(200, json.dumps(told.keys))
            else:
                self.answer(404, "")

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        told.url = url(server)
        yield told


@dataclass
class Faults:
    """Answers of a service in order, the last one for ever: status, fault, headers."""

    answers: list[tuple[int, dict[str, str], dict[str, str]]]
    asked: int = 0
    url: str = ""


@contextmanager
def failing_service(*answers: tuple[int, dict[str, str], dict[str, str]]) -> Iterator[Faults]:
    """Serve the given answers to every POST."""
    faults = Faults(list(answers))

    class Handler(_Quiet):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            chosen = faults.answers[min(faults.asked, len(faults.answers) - 1)]
            faults.asked += 1
            self.answer(chosen[0], json.dumps(chosen[1]), chosen[2])

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        faults.url = url(server)
        yield faults


class _Quiet(BaseHTTPRequestHandler):
    def answer(self, status: int, body: str, headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""
