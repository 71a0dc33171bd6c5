"""Counters out of a server's /metrics page: was there help from a prefix cache after all?"""

import http.client
from collections.abc import Sequence

from .chat import Server

PAGE_LIMIT = 16 << 20  # bytes


def counter(page: str, name: str) -> float | None:
    """Return the sum of a metric over its labels, or None where the page has no such metric."""
    found = [
        line.rsplit(" ", 1)[1]
        for line in page.splitlines()
        if line.startswith(name) and line[len(name) : len(name) + 1] in ("{", " ")
    ]
    try:
        return sum(map(float, found)) if found else None
    except ValueError:
        return None


def read_counters(server: Server, path: str | None, names: Sequence[str]) -> list[float | None]:
    """Return the named counters; None each where the server has no such page or does not answer."""
    if path is None:
        return [None for _ in names]
    connection = server.connect(timeout=10)
    try:
        connection.request("GET", server.path(path), headers=server.headers())
        response = connection.getresponse()
        page = response.read(PAGE_LIMIT).decode(errors="replace") if response.status == 200 else ""
    except (OSError, http.client.HTTPException):
        page = ""
    finally:
        connection.close()
    return [counter(page, name) for name in names]


def hit_rate(before: Sequence[float | None], after: Sequence[float | None]) -> float | None:
    """Return hits over queries between two readings of (queries, hits)."""
    if None in before or None in after:
        return None
    queries, hits = ((b or 0.0) - (a or 0.0) for a, b in zip(before, after, strict=True))
    return hits / queries if queries > 0 else None
