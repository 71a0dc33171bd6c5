"""The session transport: one interactive session a host, in which our program does everything."""

import hashlib
import json
from collections.abc import Callable
from typing import BinaryIO
from uuid import uuid4

from pyinfra_ssm._account import Account
from pyinfra_ssm._arriving import Arriving
from pyinfra_ssm._bulk import FileRequest, fetch
from pyinfra_ssm._channel import DEFAULT_PAYLOAD_SIZE
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
from pyinfra_ssm._host_program import HostProgram, read_json
from pyinfra_ssm._program import serving_command
from pyinfra_ssm._session import Session
from pyinfra_ssm._shell import shell_arguments
from pyinfra_ssm._transport import Ending, OnOutput, Request, SessionOptions, Stream
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
_STREAMS: dict[int, Stream] = {Kind.STDOUT: Stream.STDOUT, Kind.STDERR: Stream.STDERR}


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
        opening = self._account.start_session(
            self._target, self._options.document, {"command": [command]}
        )
        self._session = Session(self._account, self._target, opening, program, size)
        try:
            self._session.wait_for(lambda: program.hello, _OPEN_LIMIT)
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

    def begin(self, request: Request) -> "Running":
        """Start a command without waiting for it; several may run at once."""
        exchange = _Exchange(self._ready(), self._program)
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

    def put(self, path: str, source: BinaryIO, user: str | None) -> None:
        self._twice(lambda: self._put_once(path, source, user))

    def get(self, path: str, sink: BinaryIO, user: str | None) -> None:
        request = FileRequest(path, user, Arriving(path, sink))
        try:
            limit = _LARGE if self._bulk_works else _NO_LIMIT
            self._twice(lambda: self._get_once(request, limit))
        except RemoteFileError as error:
            if error.large is None:
                raise
            if not self._get_bulk(request):
                self._twice(lambda: self._get_once(request, _NO_LIMIT))

    # Requests

    def _ready(self) -> Session:
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

    def _put_once(self, path: str, source: BinaryIO, user: str | None) -> None:
        source.seek(0)
        digest, size = hashlib.sha256(), 0
        with _Exchange(self._ready(), self._program) as exchange:
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

    def _get_once(self, request: FileRequest, limit: int) -> None:
        request.content.restart()
        body = {"path": request.path, "user": request.user, "limit": limit}
        with _Exchange(self._ready(), self._program) as exchange:
            exchange.send_json(Kind.GET, body)
            while (frame := exchange.receive()).kind == Kind.CONTENT:
                request.content.add(frame.body)
            request.content.check(frame)

    def _get_bulk(self, request: FileRequest) -> bool:
        """Fetch a large file through a session of its own; return whether that worked."""
        sudo = bool((self._program.hello or {}).get("sudo"))
        for _ in range(2):  # such a session loses output when its socket drops
            request.content.restart()
            try:
                fetch(self._account, self._target, self._options, request, sudo)
                return True
            except ServiceError:
                self._bulk_works = False  # not allowed, or no such document: not worth asking again
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


class _Exchange:
    """The frames of one request; what is not over when it is left is cancelled."""

    def __init__(self, session: Session, program: HostProgram) -> None:
        self.session, self._program = session, program
        self._ident = session.look(program.open_request)
        self._is_over = False

    def __enter__(self) -> "_Exchange":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if not self._is_over:
                self.session.send(encode(Frame(Kind.CANCEL, self._ident)))
        except SSMError:
            pass  # the session is over, and the command with it
        finally:
            self.close()

    def close(self) -> None:
        self.session.look(lambda: self._program.close_request(self._ident))

    def send(self, kind: Kind, body: bytes = b"") -> None:
        self.session.send(encode(Frame(kind, self._ident, body)))

    def send_json(self, kind: Kind, body: object) -> None:
        self.send(kind, json.dumps(body).encode())

    def receive(self, limit: float | None = None) -> Frame:
        """Return the next frame of the host; a failure is raised as RemoteFileError."""
        return self._check(
            self.session.wait_for(lambda: self._program.next_frame(self._ident), limit)
        )

    def raise_failure(self) -> None:
        """Raise what the host has to say against the request, if anything."""
        frame = self.session.look(lambda: self._program.next_frame(self._ident))
        if frame is not None:
            self._check(frame)

    def _check(self, frame: Frame) -> Frame:
        self._is_over = frame.kind in (Kind.EXITED, Kind.STORED, Kind.CONTENT_END, Kind.FAILED)
        if frame.kind == Kind.FAILED:
            failure = read_json(frame)
            raise RemoteFileError(str(failure.get("text")), failure.get("large"))
        return frame


class Running:
    """A command that was started; finish() or drop() it once."""

    def __init__(self, exchange: _Exchange, limit: float | None) -> None:
        self._exchange, self._limit = exchange, limit

    def finish(self, on_output: OnOutput) -> Ending:
        """Tell its output as it comes, and return how it ended; raises SSMError."""
        with self._exchange as exchange:
            while (frame := exchange.receive(self._limit)).kind != Kind.EXITED:
                if frame.kind in _STREAMS:
                    on_output(_STREAMS[frame.kind], frame.body)
            ending = read_json(frame)
            return Ending(ending.get("status"), ending.get("signal"), bool(ending.get("timeout")))

    def drop(self) -> None:
        """Let it run to its end unheard."""
        self._exchange.close()


_REMEDIES = {
    "password is required": "sudo wants a password there. Let the session's user run sudo without "
    "one, or name a session document with runAsElevated in ssm_document.",
    "authentication is required": "sudo wants a password there. Let the session's user run sudo "
    "without one, or name a session document with runAsElevated in ssm_document.",
    "not in the sudoers": "The session's user may not use sudo. Give it a NOPASSWD rule, or name a "
    "session document with runAsElevated in ssm_document.",
    "sudo: not found": "There is no sudo. Install it, or name a session document with "
    "runAsElevated in ssm_document, or set ssm_transport to run-command.",
    "not found": "Install python3, or name its path in ssm_python, or set ssm_transport to "
    "run-command.",
    "No such file": "Install python3, or name its path in ssm_python, or set ssm_transport to "
    "run-command.",
}


def explain_start(ending: str, noise: str) -> str:
    """Return why the program did not start, from what the host printed instead, and the remedy."""
    said = " ".join(noise.split())[-400:]
    remedy = next((text for sign, text in _REMEDIES.items() if sign in said), "")
    shown = f'; the host said "{said}"' if said else ""
    return (
        f"could not start our program in a session: {ending.rstrip('.')}{shown}. {remedy}".rstrip()
    )
