"""One request of the session transport: its frames to the host and back, and its end."""

import json

from pyinfra_ssm._deadline import Deadline
from pyinfra_ssm._errors import RemoteFileError, SessionEnded, SSMError
from pyinfra_ssm._host_program import HostProgram, read_json
from pyinfra_ssm._session import Session
from pyinfra_ssm._transport import Ending, OnOutput, Stream
from pyinfra_ssm.remote.framing import Frame, FramingError, Kind, encode

_STREAMS: dict[int, Stream] = {Kind.STDOUT: Stream.STDOUT, Kind.STDERR: Stream.STDERR}


class Exchange:
    """The frames of one request; what is not over when it is left is cancelled."""

    def __init__(self, session: Session, program: HostProgram, deadline: Deadline) -> None:
        self.session, self._program = session, program
        self._deadline = deadline
        self._ident = session.look(program.open_request)
        self._is_over = False

    def __enter__(self) -> "Exchange":
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
        self._deadline.left()
        try:
            raw = encode(Frame(kind, self._ident, body))
        except FramingError as error:
            raise SSMError(f"too long to be sent: {error}") from error
        self.session.send(raw)

    def send_json(self, kind: Kind, body: object) -> None:
        self.send(kind, json.dumps(body).encode())

    def receive(self, limit: float | None = None) -> Frame:
        """Return the next frame of the host; a failure is raised as RemoteFileError."""
        limit = self._deadline.left(limit)
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

    def __init__(self, exchange: Exchange, limit: float | None) -> None:
        """`limit` is in seconds, for the host to say anything at all."""
        self._exchange, self._limit = exchange, limit

    def finish(self, on_output: OnOutput) -> Ending:
        """Tell its output as it comes, and return how it ended; raises SSMError."""
        try:
            return self._finish(on_output)
        except SessionEnded as error:
            raise SessionEnded(
                f"its session ended while the command ran: {str(error).rstrip('.')}. It may have "
                "been done, in part or not at all: look there before it is run again"
            ) from error

    def _finish(self, on_output: OnOutput) -> Ending:
        with self._exchange as exchange:
            while (frame := exchange.receive(self._limit)).kind != Kind.EXITED:
                if frame.kind in _STREAMS:
                    on_output(_STREAMS[frame.kind], frame.body)
            ending = read_json(frame)
            return Ending(ending.get("status"), ending.get("signal"), bool(ending.get("timeout")))

    def drop(self) -> None:
        """Let it run to its end unheard."""
        self._exchange.close()
