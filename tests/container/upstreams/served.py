"""All stand-ins for upstreams, served on loopback for as long as a block lasts."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from tests.container.upstreams.static_http import StaticServer
from tests.container.upstreams.vllm_git import GitServer

Server = TypeVar("Server", bound=socketserver.TCPServer)


@dataclass(frozen=True)
class Ports:
    """Where the stand-ins listen; 0 lets the kernel pick."""

    http: int = 0
    git: int = 0


@contextmanager
def serve(web: Path, repositories: Path, remembered: Path) -> Iterator[Ports]:
    """Serve the folder `web` over HTTP and `repositories` over git's protocol.

    The ports are kept in the file `remembered` and taken again next time if they are free: they
    are in the host's apt sources and git remotes, where a new port is a change.
    """
    wanted = _read(remembered)
    with ExitStack() as stack:
        http = stack.enter_context(_bound(StaticServer, web, wanted.http))
        git = stack.enter_context(_bound(GitServer, repositories, wanted.git))
        for server in (http, git):
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
        ports = Ports(http.server_address[1], git.server_address[1])
        remembered.parent.mkdir(parents=True, exist_ok=True)
        remembered.write_text(json.dumps(asdict(ports)))
        yield ports


def _read(remembered: Path) -> Ports:
    try:
        return Ports(**json.loads(remembered.read_text()))
    except (OSError, ValueError, TypeError):  # the first time, or cut short: any port will do
        return Ports()


def _bound(kind: Callable[[Path, int], Server], folder: Path, port: int) -> Server:
    try:
        return kind(folder, port)
    except OSError:  # taken since
        return kind(folder, 0)
