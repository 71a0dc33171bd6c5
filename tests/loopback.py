"""Servers of the standard library on loopback, each on a thread of its own while it is needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from socketserver import BaseServer
from threading import Thread
from typing import TypeVar

Served = TypeVar("Served", bound=BaseServer)


@contextmanager
def serving(server: Served) -> Iterator[Served]:
    """Have a bound server serve until the block ends, then close it."""
    # The interval is how long the end takes.
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def url(server: HTTPServer) -> str:
    """Return where a server is asked."""
    return f"http://127.0.0.1:{server.server_port}"
