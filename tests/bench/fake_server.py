"""An OpenAI-compatible server that misbehaves on demand, on a port of loopback the kernel picks."""

import json
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from files.bench.chat import Server
from tests import loopback

Body = dict[str, Any]
DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def usage(prompt: int, completion: int) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion}
    return event({"choices": [], "usage": counts})


def spoken(words: list[str], prompt_tokens: int = 7, finish: str = "length") -> list[bytes]:
    """Return a well-formed stream of one token a chunk, as vLLM sends it."""
    return [
        delta(role="assistant", content=""),
        *(delta(content=word) for word in words),
        delta(finish, content=""),
        usage(prompt_tokens, len(words)),
        DONE,
    ]


def prompt_words(body: Body) -> int:
    return sum(len(message["content"].split()) for message in body["messages"])


def obedient(body: Body) -> list[bytes]:
    """Answer with as many tokens as were asked for; a word of the prompt is a token."""
    words = [f"word{i} " for i in range(body["max_tokens"])]
    return spoken(words, prompt_tokens=4 + prompt_words(body))


@dataclass
class Refusal:
    """A status other than 200, with a body."""

    status: int
    body: Any = field(default_factory=dict)


Answer = Callable[[Body], list[bytes] | Refusal]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as real servers do; else a chunk waits 40 ms for an ACK
    server: "FakeServer"

    def do_GET(self) -> None:
        known = self.path in self.server.pages
        self._reply(200 if known else 404, self.server.pages.get(self.path, "{}").encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        if self.headers["Authorization"] not in self.server.accepted:
            return self._reply(401, b'{"error": "Unauthorized"}')
        answer = self.server.answer(body)
        if isinstance(answer, Refusal):
            return self._reply(answer.status, json.dumps(answer.body).encode())
        return self._stream(answer)

    def _stream(self, chunks: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if not self.server.cuts_streams:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: the tests read what the client makes of it."""


class FakeServer(ThreadingHTTPServer):
    """`answer` decides on each request; `accepted` are the Authorization headers it takes."""

    daemon_threads = True

    def __init__(self, answer: Answer = obedient) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.cuts_streams = False
        self.accepted: set[str | None] = {None}
        self.pages = {"/health": "", "/metrics": "", "/version": '{"version": "1.2.3"}'}
        self.requests: list[Body] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet of clients that hang up: some tests make them."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return loopback.url(self)

    def client(self, **options: Any) -> Server:
        return Server(self.url, "tiny", timeout=30, **options)


def unused_url() -> str:
    """Return a URL of loopback where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
