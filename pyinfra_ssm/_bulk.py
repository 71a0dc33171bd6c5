"""Large files out of a host, through a non-interactive session with separate output streams.

It is the one kind of session whose output the agent does not slow to 0.7 MB/s, and the one whose
output is lost without a word when the socket drops. The program over there ends with length and
digest; without them the file counts as not fetched.
"""

from collections import deque
from dataclasses import dataclass

from pyinfra_ssm._account import Account
from pyinfra_ssm._arriving import Arriving
from pyinfra_ssm._channel import DEFAULT_PAYLOAD_SIZE
from pyinfra_ssm._deadline import Deadline
from pyinfra_ssm._errors import ProtocolError, RemoteFileError
from pyinfra_ssm._events import ChannelClosed, Event, ExitCodeReceived, OutputReceived
from pyinfra_ssm._host_program import BACKLOG_LIMIT, read_json
from pyinfra_ssm._program import fetching_command
from pyinfra_ssm._session import Session
from pyinfra_ssm._starting import started
from pyinfra_ssm._transport import SessionOptions
from pyinfra_ssm.remote.framing import ArmourDecoder, Frame, FramingError, Kind

# Seconds without a frame after which the session is given up.
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A file of the host, read as `user` (None: root), and what becomes of its content."""

    path: str
    user: str | None
    content: Arriving
    deadline: Deadline


class Printout:
    """The receiver of a fetching session: frames, and then that there are no more."""

    def __init__(self) -> None:
        self._decoder = ArmourDecoder()
        self._frames: deque[Frame] = deque()
        self._backlog = 0
        self._is_over = False

    def take(self, event: Event, now: float) -> bytes:
        if isinstance(event, OutputReceived):
            try:
                frames = self._decoder.feed(event.data)
            except FramingError as error:
                raise ProtocolError(f"the program on the host sent {error}") from error
            self._frames += frames
            self._backlog += sum(len(frame.body) for frame in frames)
        if isinstance(event, ExitCodeReceived | ChannelClosed):
            self._is_over = True
        return b""

    def unasked(self, now: float) -> bytes:
        return b""

    def farewell(self) -> bytes:
        return b""

    @property
    def is_full(self) -> bool:
        return self._backlog > BACKLOG_LIMIT

    def next_frame(self) -> Frame | None:
        """Return the oldest frame that nobody took; raises RemoteFileError if none is to come."""
        if not self._frames:
            if self._is_over:
                noise = bytes(self._decoder.noise[:200]).decode(errors="replace").strip()
                raise RemoteFileError(f"the output broke off {noise}".rstrip())
            return None
        frame = self._frames.popleft()
        self._backlog -= len(frame.body)
        return frame


def fetch(account: Account, target: str, options: SessionOptions, request: FileRequest) -> None:
    """Fetch a file of the host, or raise SSMError."""
    command = fetching_command(request.path, request.user, options.python)
    # As a public copy of the document allows ("true", "false"), and the agent's own tests write it:
    # https://github.com/aws/amazon-ssm-agent/blob/mainline/agent/session/shell/shell_test.go
    parameters = {"command": [command], "separateOutputStream": ["true"]}
    printout = Printout()
    with started(account, target, options.bulk_document, parameters) as opening:
        # Without its socket what is printed is lost, and the program is stuck.
        session = Session(
            account, target, opening, printout, DEFAULT_PAYLOAD_SIZE, outlives_socket=False
        )
    try:
        while (frame := _next(session, printout, request)).kind == Kind.CONTENT:
            request.content.add(frame.body)
    finally:
        session.close()
    if frame.kind != Kind.CONTENT_END:
        raise RemoteFileError(str(read_json(frame).get("text")))
    request.content.check(frame)


def _next(session: Session, printout: Printout, request: FileRequest) -> Frame:
    return session.wait_for(printout.next_frame, request.deadline.left(_PATIENCE))
