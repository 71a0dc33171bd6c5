"""One session: its socket, its clock, its thread. All else here is told the time and does no I/O.

A thread of its own (a greenlet under pyinfra's gevent) owns the socket. It keeps the data channel
going while nobody waits: it acknowledges, repeats, answers pings, and resumes the session when the
socket is lost or the service closes it, which it does about once an hour
(https://github.com/aws/session-manager-plugin/issues/135).
"""

import contextlib
import random
import select
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from pyinfra_ssm import _leaving
from pyinfra_ssm._account import Account, Opening, Waiting
from pyinfra_ssm._backoff import Backoff
from pyinfra_ssm._channel import Channel
from pyinfra_ssm._encryption import encryption_context
from pyinfra_ssm._entropy import Entropy
from pyinfra_ssm._errors import (
    HostTimeout,
    Interrupted,
    NotSent,
    ServiceError,
    SessionEnded,
    SSMError,
)
from pyinfra_ssm._events import ChannelClosed, DataKeyRequested, Event, Receiver
from pyinfra_ssm._liveness import SOCKET_PATIENCE, Liveness, Verdict
from pyinfra_ssm._wakeup import Wakeup
from pyinfra_ssm._websocket import SocketLost, Websocket

_LOOK_EVERY = 5.0  # seconds, at most, between looks at what may be due
# For how long a lost socket is replaced before the session is given up: a change of networks or a
# laptop's sleep ends sooner.
_RECONNECT_LIMIT = 120.0
# For how long an upload waits for its own frames to be acknowledged before it tries a larger one.
_QUIET_LIMIT = 5.0
_WORTH_REPEATING = {"EndpointConnectionError", "ConnectionClosedError", "ConnectTimeoutError"}

T = TypeVar("T")
real_waiting = Waiting(time.sleep, random.random)
new_lock = threading.Lock
monotonic = time.monotonic


class Session:
    """A session from StartSession to TerminateSession. Any thread may call it."""

    def __init__(
        self,
        account: Account,
        target: str,
        opening: Opening,
        receiver: Receiver,
        payload_size: int,
        outlives_socket: bool = True,
    ) -> None:
        """Take up what StartSession opened. Unless it `outlives_socket`, it ends with its first."""
        self.ended: SSMError | None = None
        self._is_over_there = False  # nothing is left to terminate
        self._closing = False
        self._trouble = ""  # why there is no socket, while there is none
        self._outlives_socket = outlives_socket
        self._changed = threading.Condition()
        self._account, self._target, self._receiver = account, target, receiver
        epoch = time.time() - time.monotonic()
        new_id = Entropy().uuid  # called under our lock
        self._channel = Channel(new_id(), new_id, epoch=epoch, payload_size=payload_size)
        self._socket: Websocket | None = None
        self._liveness = Liveness(time.monotonic())
        self._backoff = Backoff(random.random)
        self._wakeup = Wakeup()
        self.session_id, self._opening = opening.session_id, opening
        _leaving.register(self)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    # For the threads that use it

    def send(self, data: bytes) -> None:
        """Send input, in pieces as there is room; raises NotSent or SessionEnded."""
        view = memoryview(data)
        with self._changed:
            if self.ended is not None:
                raise self._ending(NotSent)
            while view:
                room = self.wait_for(lambda: self._channel.room or None)
                self._channel.send(bytes(view[:room]), time.monotonic())
                view = view[room:]
                self._wakeup.call()

    def wait_for(self, take: Callable[[], T | None], limit: float | None = None) -> T:
        """Return what `take` does once that is not None; raises SessionEnded or HostTimeout.

        `limit` is in seconds. `take` is called under the session's lock, whenever something came.
        """
        deadline = None if limit is None else time.monotonic() + limit
        with self._changed:
            while (taken := self.look(take)) is None:
                if self.ended is not None:
                    raise self._ending(SessionEnded)
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    trouble = f" ({self._trouble})" if self._trouble else ""
                    raise HostTimeout(f"no answer within {limit:g} s{trouble}")
                self._changed.wait(left)
        return taken

    def look(self, take: Callable[[], T]) -> T:
        """Return what `take` does now, under the session's lock."""
        with self._changed:
            was_full = self._receiver.is_full
            taken = take()
            if was_full and not self._receiver.is_full:
                self._wakeup.call()  # it had stopped reading
            return taken

    def probe(self, large: bytes, small: bytes) -> bool:
        """See Channel.probe; return False, and do nothing, if the channel does not fall quiet."""
        try:
            self.wait_for(lambda: self._channel.is_quiet or None, _QUIET_LIMIT)
        except HostTimeout:
            return False
        with self._changed:
            if not self._channel.is_quiet:
                return False
            self._channel.probe(large, small, time.monotonic())
        self._wakeup.call()
        return True

    @property
    def payload_size(self) -> int:
        return self._channel.payload_size

    def close(self) -> None:
        """End the session, here and on the host. Never raises: it is on the way out of errors."""
        self._closing = True
        self._wakeup.call()
        self._thread.join(SOCKET_PATIENCE)  # it ends the session: many do so at once
        _leaving.unregister(self)

    def abandon(self) -> None:
        """Let go of all who wait; does not wait itself, as it is called by a signal handler."""
        self.ended = self.ended or Interrupted("interrupted")
        self._wakeup.call()

    def _ending(self, kind: type[SSMError]) -> SSMError:
        return self.ended if isinstance(self.ended, Interrupted) else kind(str(self.ended))

    # The thread

    def _run(self) -> None:
        reason: SSMError = SessionEnded("closed by us")
        try:
            self._live()
        except SSMError as error:
            reason = error
        except Exception as error:
            reason = SSMError(f"unexpected {type(error).__name__}: {error}")
            raise
        finally:
            with self._changed:  # whoever waits must not wait for ever
                self.ended = self.ended or reason
                self._changed.notify_all()
            if self._socket:
                self._socket.close()
            if not self._is_over_there:
                with contextlib.suppress(SSMError):
                    self._account.terminate_session(self.session_id)
            with self._changed:
                self._wakeup.close()

    def _live(self) -> None:
        self._connect()
        while self.ended is None and not self._closing:
            try:
                self._turn()
            except SocketLost as error:
                self._trouble = str(error)
                self._connect()
        self._take_leave()

    def _take_leave(self) -> None:
        """Tell the program there to go: nobody can where TerminateSession is not allowed."""
        with self._changed:
            if len(farewell := self._receiver.farewell()) <= self._channel.room:
                self._channel.send(farewell, time.monotonic())
        if self._socket:
            with contextlib.suppress(SocketLost):
                self._socket.send(self._channel.data_to_send())

    def _turn(self) -> None:
        """Send what is due, wait for whatever comes first, take it."""
        assert self._socket is not None
        socket, now = self._socket, time.monotonic()
        with self._changed:
            self._do_what_is_due(now)
            outbox = self._channel.data_to_send()
            until = min(self._channel.deadline() or now + _LOOK_EVERY, now + _LOOK_EVERY)
            reads = not self._receiver.is_full
        if outbox:
            socket.send(outbox)
        waited = [self._wakeup, socket] if reads else [self._wakeup]
        patience = 0.0 if reads and socket.has_more else until - time.monotonic()
        readable = self._nap(waited, patience)
        if reads and (socket.has_more or socket in readable):
            self._take(socket.receive())

    def _nap(self, waited: list[Any], patience: float) -> list[Any]:
        """Wait for a call of wake or what else there is; return what is readable."""
        readable, _, _ = select.select(waited, [], [], max(0.0, patience))
        if self._wakeup in readable:
            self._wakeup.drain()
        return readable

    def _do_what_is_due(self, now: float) -> None:
        assert self._socket is not None
        for event in self._channel.handle_deadline(now):
            self._dispatch(event, now)
        unasked = self._receiver.unasked(now)
        if unasked and len(unasked) <= self._channel.room:
            self._channel.send(unasked, now)
        unacknowledged = len(self._channel.window) > 0 and not self._receiver.is_full
        match self._liveness.verdict(now, unacknowledged, self._channel.window.is_paused):
            case Verdict.PING:
                self._socket.ping()
            case Verdict.SOCKET_DEAD:
                raise SocketLost("silence")
            case Verdict.HOST_DEAD:
                raise SessionEnded("the host stopped answering; it may have rebooted")

    def _take(self, frames: list[bytes]) -> None:
        now = time.monotonic()
        with self._changed:
            self._liveness.hear(now, from_host=bool(frames))
            if frames:
                self._backoff.reset()
                self._trouble = ""
            for raw in frames:
                for event in self._channel.receive(raw, now):
                    self._dispatch(event, now)
            self._changed.notify_all()

    def _dispatch(self, event: Event, now: float) -> None:
        if isinstance(event, DataKeyRequested):
            self._fetch_key(event.key_id, now)
        answer = self._receiver.take(event, now)
        if answer:
            self._channel.send(answer, now)
        if isinstance(event, ChannelClosed):
            self._is_over_there = True
            self.ended = SessionEnded(event.output or "the service closed the session")

    def _fetch_key(self, key_id: str, now: float) -> None:
        context = encryption_context(self.session_id, self._target)
        try:
            key = self._account.generate_data_key(key_id, context)
        except ServiceError as error:
            self._channel.refuse_data_key(str(error), now)
            if self._socket:
                self._socket.send(self._channel.data_to_send())
            raise
        self._channel.provide_data_key(*key, now)

    # Sockets

    def _open_socket(self) -> None:
        opening: Opening | None = self._opening  # at first, when its token is not spent
        if self._socket:
            self._socket.close()
            opening = self._account.resume_session(self._opening)
        if opening is None:
            self._is_over_there = True
            raise SessionEnded("the session ended while its connection was lost")
        self._opening = opening
        self._socket = Websocket(opening.url, self._account.sign_stream)
        now = time.monotonic()
        with self._changed:
            self._liveness.renew(now)
            for event in self._channel.connected(opening.token, now):
                self._dispatch(event, now)

    def _connect(self) -> None:
        """Open the first socket, or resume the session on a new one; raises SessionEnded."""
        if self._socket and not self._outlives_socket:
            raise SessionEnded("its connection was lost")
        give_up = time.monotonic() + _RECONNECT_LIMIT
        while not self._closing:
            self._nap([self._wakeup], self._backoff.pause())
            try:
                self._open_socket()
                return
            except (SocketLost, ServiceError) as error:
                if isinstance(error, ServiceError) and error.code not in _WORTH_REPEATING:
                    raise
                self._trouble = str(error)
            if time.monotonic() > give_up:
                raise SessionEnded(f"its connection was lost for good: {self._trouble}")
