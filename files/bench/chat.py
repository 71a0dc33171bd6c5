"""Chat completions over HTTP: one request in, a timed Completion or a ChatError out."""

import http.client
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

from .stream import Completion, StreamError, StreamReader, error_text

Clock = Callable[[], float]  # monotonic seconds: the wall clock of a fresh host still jumps

LINE_LIMIT = 4 << 20  # bytes; a server that never ends its line must not fill the memory
# How servers say that a request can never fit: vLLM, transformers, llama.cpp, TGI.
TOO_LONG = (
    *("context length", "max_model_len", "too long", "exceeds the available context"),
    *("longer than the maximum", "max_seq_len", "maximum input length", "must be <="),
)


class Trouble(StrEnum):
    """Why there is no completion, in kinds that need different remedies."""

    UNREACHABLE = "unreachable"
    UNAUTHORIZED = "unauthorized"
    NO_SUCH_MODEL = "no such model"
    INFEASIBLE = "infeasible"  # this request can never work on this server
    BUSY = "busy"
    REFUSED = "refused"
    BROKEN = "broken"  # it began to answer, and then did not
    TIMEOUT = "timeout"


class ChatError(Exception):
    """No usable completion. `partial` holds what had come by then."""

    def __init__(self, trouble: Trouble, message: str, partial: Completion | None = None) -> None:
        super().__init__(message)
        self.trouble, self.partial = trouble, partial


@dataclass(frozen=True)
class Server:
    """Where to ask, and how.

    `full_length` joins the requests that must not end early: each server has its own fields for
    that. `$tokens` in its strings stands for the tokens asked for.
    """

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 600.0  # seconds one request may take
    full_length: Mapping[str, Any] = field(default_factory=dict)

    def connect(self, timeout: float | None = None) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        return kind(parts.hostname or "", parts.port, timeout=timeout or self.timeout)

    def path(self, path: str) -> str:
        return urlsplit(self.url).path.rstrip("/") + path

    def headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if self.api_key is not None:
            headers["Authorization"] = f"Bearer {self.api_key}"
        return headers


def read_key(path: str | None) -> str | None:
    """Return the API key in a file; a key given by argument would show in ps.

    The file is an EnvironmentFile with one NAME=key, or holds the key alone, which may end in `=`.
    """
    if path is None:
        return None
    text = Path(path).read_text()
    named = re.search(r"""^[A-Z][A-Z0-9_]*=["']?([^"'\s]+)""", text, re.MULTILINE)
    return named[1] if named else text.strip()


def chat_body(server: Server, prompt: str, tokens: int) -> dict[str, Any]:
    """Return a greedy, streamed request for `tokens` tokens, or fewer where the text ends."""
    return {
        "model": server.model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def full_length_body(server: Server, prompt: str, tokens: int) -> dict[str, Any]:
    """Return a request for exactly `tokens` tokens, as far as the server's own fields force it."""
    forced = {
        key: Template(value).substitute(tokens=tokens) if isinstance(value, str) else value
        for key, value in server.full_length.items()
    }
    return chat_body(server, prompt, tokens) | forced


def complete(server: Server, body: Mapping[str, Any], clock: Clock = time.monotonic) -> Completion:
    """Send one streamed request and time what comes back. Raises ChatError."""
    connection = server.connect()
    try:
        connection.connect()
        reader = StreamReader(clock())
        connection.request(
            "POST", server.path("/v1/chat/completions"), json.dumps(body), server.headers()
        )
        response = connection.getresponse()
        if response.status != 200:
            raise _refusal(server, response.status, response.read(LINE_LIMIT))
        return _read(response, reader, clock, server.timeout)
    except TimeoutError as error:
        raise ChatError(
            Trouble.TIMEOUT, f"{server.url} sent nothing for {server.timeout:g} s"
        ) from error
    except OSError as error:
        raise ChatError(
            Trouble.UNREACHABLE, f"{server.url} does not answer: {error}. Is the server up?"
        ) from error
    except http.client.HTTPException as error:
        raise ChatError(Trouble.BROKEN, f"{server.url} does not speak HTTP: {error!r}") from error
    finally:
        connection.close()


def _read(
    response: http.client.HTTPResponse, reader: StreamReader, clock: Clock, timeout: float
) -> Completion:
    completion = reader.completion
    try:
        while line := response.readline(LINE_LIMIT):
            now = clock()
            reader.feed(line, now)
            if now - reader.started > timeout:
                raise ChatError(Trouble.TIMEOUT, f"not finished after {timeout:g} s", completion)
    except (OSError, http.client.HTTPException) as error:
        raise ChatError(Trouble.BROKEN, f"the stream broke: {error!r}", completion) from error
    except StreamError as error:
        raise ChatError(Trouble.BROKEN, f"{error}", completion) from error
    if completion.complaint:
        raise ChatError(Trouble.BROKEN, completion.complaint, completion)
    return completion


def _refusal(server: Server, status: int, body: bytes) -> ChatError:
    try:
        words = error_text(json.loads(body))
    except ValueError:
        words = body.decode(errors="replace").strip()
    words = words[:500] or "(no body)"
    return ChatError(classify(status, words), f"HTTP {status} for model {server.model}: {words}")


def classify(status: int, words: str) -> Trouble:
    """Return what an HTTP refusal means for whoever asked."""
    if status in (401, 403):
        return Trouble.UNAUTHORIZED
    if status in (429, 503):
        return Trouble.BUSY
    if status in (400, 413, 422) and any(sign in words.lower() for sign in TOO_LONG):
        return Trouble.INFEASIBLE
    if status == 404:
        return Trouble.NO_SUCH_MODEL
    return Trouble.REFUSED
