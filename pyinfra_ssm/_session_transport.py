"""The session transport: one interactive session a host, in which our program does everything."""

import hashlib
from collections.abc import Callable
from typing import BinaryIO
from uuid import uuid4

from pyinfra_ssm._account import Account
from pyinfra_ssm._arriving import Arriving
from pyinfra_ssm._bulk import FileRequest, fetch
from pyinfra_ssm._channel import DEFAULT_PAYLOAD_SIZE
from pyinfra_ssm._deadline import Deadline
from pyinfra_ssm._errors import (
    HostTimeout,
    Interrupted,
    NoProgram,
    NotSent,
    RemoteFileError,
    ServiceError,
    SessionEnded,
    SSMError,
)
from pyinfra_ssm._exchange import Exchange, Running
from pyinfra_ssm._host_program import HostProgram
from pyinfra_ssm._program import serving_command
from pyinfra_ssm._session import Session
from pyinfra_ssm._shell import shell_arguments
from pyinfra_ssm._start_failure import explain_start
from pyinfra_ssm._starting import started
from pyinfra_ssm._transport import Ending, OnOutput, Request, SessionOptions
from pyinfra_ssm.remote.framing import CHUNK, Frame, Kind, encode

# Seconds from StartSession to our program's first word. The agent takes one by itself; a host that
# is short of memory or still booting takes many.
_OPEN_LIMIT = 60.0
# Seconds that a host has, beyond a command's own limit, to say that the limit has passed.
_GRACE = 30.0
# Bytes from which an upload is worth finding out whether larger frames pass, and a download worth a
# session of its own. Below, the round trips that this takes cost more than they save.
_LARGE = 256 << 10
# The agent takes 200,000 (recorded); 16 KiB already makes the cost per frame small.
_PROBED_SIZE = 16 << 10
_NO_LIMIT = 1 << 62


class SessionTransport:
    """A host through one session, which is opened again when it has ended between requests."""

    def __init__(self, account: Account, target: str, options: SessionOptions) -> None:
        self._account, self._target, self._options = account, target, options
        self._session: Session | None = None
        self._program = HostProgram("")
        self._bulk_works = bool(options.bulk_document)

    def open(self) -> None:
        self.close()
        nonce = uuid4().hex
        self._program = program = HostProgram(nonce)
        command = serving_command(nonce, self._options.python)
        size = self._options.payload_size or self._account.payload_size or DEFAULT_PAYLOAD_SIZE
        with started(
            self._account, self._target, self._options.document, {"command": [command]}
        ) as opening:
            self._session = Session(self._account, self._target, opening, program, size)
        try:
            self._session.wait_for(lambda: program.is_up or None, _OPEN_LIMIT)
        except SSMError as error:
            self.close()
            if isinstance(error, SessionEnded | HostTimeout):
                raise NoProgram(explain_start(str(error), program.noise)) from error
            raise

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def run(self, request: Request, on_output: OnOutput) -> Ending:
        """Run a command, at most once: again only if nothing of it had left for the host."""
        try:
            running = self.begin(request)
        except NotSent:
            running = self.begin(request)
        return running.finish(on_output)

    def begin(self, request: Request) -> Running:
        """Start a command without waiting for it; several may run at once."""
        exchange = Exchange(self._ready(), self._program, Deadline())
        body = {
            "argv": shell_arguments(request.command),
            "timeout": request.timeout,
            "terminal": request.terminal,
            "stdin": bool(request.stdin),
        }
        try:
            exchange.send_json(Kind.RUN, body)
            if request.stdin:
                for at in range(0, len(request.stdin), CHUNK):
                    exchange.send(Kind.INPUT, request.stdin[at : at + CHUNK])
                exchange.send(Kind.INPUT)
        except SSMError:
            exchange.close()
            raise
        return Running(exchange, request.timeout + _GRACE if request.timeout else None)

    def put(
        self, path: str, source: BinaryIO, user: str | None, limit: float | None = None
    ) -> None:
        deadline = Deadline(limit)
        self._twice(lambda: self._put_once(path, source, user, deadline))

    def get(self, path: str, sink: BinaryIO, user: str | None, limit: float | None = None) -> None:
        request = FileRequest(path, user, Arriving(path, sink), Deadline(limit))
        try:
            largest = _LARGE if self._bulk_works else _NO_LIMIT
            self._twice(lambda: self._get_once(request, largest))
        except RemoteFileError as error:
            if error.large is None:
                raise
            if not self._get_bulk(request):
                self._twice(lambda: self._get_once(request, _NO_LIMIT))

    # Requests

    def _ready(self) -> Session:
        if self._session is not None and isinstance(self._session.ended, Interrupted):
            raise self._session.ended
        if self._session is None or self._session.ended is not None:
            self.open()
        assert self._session is not None
        return self._session

    def _twice(self, attempt: Callable[[], None]) -> None:
        """Try again what may be done twice, if the session ends meanwhile."""
        try:
            attempt()
        except SessionEnded:
            attempt()

    def _put_once(self, path: str, source: BinaryIO, user: str | None, deadline: Deadline) -> None:
        source.seek(0)
        digest, size = hashlib.sha256(), 0
        with Exchange(self._ready(), self._program, deadline) as exchange:
            exchange.send_json(Kind.PUT, {"path": path, "user": user})
            while data := source.read(CHUNK):
                digest.update(data)
                size += len(data)
                if size >= _LARGE:
                    self._learn_payload_size(exchange.session)
                exchange.send(Kind.CONTENT, data)
                exchange.raise_failure()
            exchange.send_json(Kind.CONTENT_END, {"size": size, "sha256": digest.hexdigest()})
            exchange.receive()

    def _get_once(self, request: FileRequest, largest: int) -> None:
        request.content.restart()
        body = {"path": request.path, "user": request.user, "limit": largest}
        with Exchange(self._ready(), self._program, request.deadline) as exchange:
            exchange.send_json(Kind.GET, body)
            while (frame := exchange.receive()).kind == Kind.CONTENT:
                request.content.add(frame.body)
            request.content.check(frame)

    def _get_bulk(self, request: FileRequest) -> bool:
        """Fetch a large file through a session of its own; return whether that worked."""
        for _ in range(2):  # such a session loses output when its socket drops
            request.content.restart()
            try:
                fetch(self._account, self._target, self._options, request)
                return True
            except ServiceError as error:
                # Not allowed, or no such document: not worth asking again. An agent that restarts
                # takes no new session for some seconds, while those that it has go on (recorded).
                self._bulk_works = error.code == "TargetNotConnected"
                return False
            except Interrupted:
                raise
            except SSMError:
                continue
        return False

    def _learn_payload_size(self, session: Session) -> None:
        """Find out, once for an account, whether the service passes larger frames."""
        if self._options.payload_size or self._account.payload_size:
            return
        self._account.payload_size = DEFAULT_PAYLOAD_SIZE  # also if we never hear of it again
        small = encode(Frame(Kind.PING, 0))
        large = encode(Frame(Kind.PING, 0, bytes(_PROBED_SIZE - len(small))), level=0)
        self._program.probed = None
        if session.probe(large, small):
            session.wait_for(lambda: self._program.probed)
            self._account.payload_size = session.payload_size
