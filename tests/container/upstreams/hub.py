"""A stand-in for the model hub: one repository, to whoever has its token.

Paths, headers and error codes are those that huggingface_hub 1.33.0 and 2.4.0 ask for and read.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.loopback import serving, url

COMMIT = sha1(b"a commit").hexdigest()


@dataclass
class Hub:
    """What is served, and what may go wrong.

    + files: content by name
    + token: who has another or none is refused, as by a gated repository
    + lost: files that are listed and not found
    + meanwhile: called with the name of each file before it is sent
    + sent: names of the files that were sent, in that order
    """

    repository: str
    files: Mapping[str, bytes]
    token: str
    lost: tuple[str, ...] = ()
    meanwhile: Callable[[str], None] = lambda name: None
    sent: list[str] = field(default_factory=list)
    url: str = ""

    def listing(self) -> list[dict[str, object]]:
        """Return the tree as the hub's API has it."""
        return [
            {"type": "file", "path": name, "size": len(content), "oid": _id(content)}
            for name, content in self.files.items()
        ]

    def description(self) -> dict[str, object]:
        """Return the model as the hub's API has it, with the sizes of its files."""
        siblings = [
            {"rfilename": name, "size": len(content), "blobId": _id(content)}
            for name, content in self.files.items()
        ]
        return {"id": self.repository, "sha": COMMIT, "siblings": siblings}


@contextmanager
def model_hub(repository: str, files: Mapping[str, bytes], token: str) -> Iterator[Hub]:
    """Serve the repository on a port of the kernel's choice while the block lasts."""
    hub = Hub(repository, files, token)

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path, api = self.path.partition("?")[0], f"/api/models/{hub.repository}"
            name = path.removeprefix(f"/{hub.repository}/resolve/{COMMIT}/")
            if self.headers.get("Authorization") != f"Bearer {hub.token}":
                self.answer(401, {"X-Error-Code": "GatedRepo"}, b"")
            elif path.startswith(f"{api}/revision/"):
                self.answer(200, {}, json.dumps(hub.description()).encode())
            elif path.startswith(f"{api}/tree/"):
                self.answer(200, {}, json.dumps(hub.listing()).encode())
            elif name in hub.files and name not in hub.lost:
                self.send_file(name, hub.files[name])
            else:
                self.answer(404, {"X-Error-Code": "EntryNotFound"}, b"")

        def send_file(self, name: str, content: bytes) -> None:
            headers = {"ETag": f'"{_id(content)}"', "X-Repo-Commit": COMMIT}
            if self.command == "GET":
                hub.meanwhile(name)
                hub.sent.append(name)
            self.answer(200, headers, content)

        def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        hub.url = url(server)
        yield hub


def _id(content: bytes) -> str:
    return sha1(content).hexdigest()
