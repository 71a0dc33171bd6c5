"""One session as the service has it: a token, the client's socket, the agent behind it."""

import asyncio
import json
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import uuid4

from aiohttp import WSCloseCode, WSMsgType, web

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import AgentMessage, Flags, MessageType
from pyinfra_ssm.emulator.account import Account, Host
from pyinfra_ssm.emulator.agent import Agent, Program
from pyinfra_ssm.emulator.client_socket import ClientSocket
from pyinfra_ssm.emulator.documents import SessionDocument, SessionType
from pyinfra_ssm.emulator.handshake import Handshake
from pyinfra_ssm.emulator.noninteractive import NonInteractive
from pyinfra_ssm.emulator.port import Port
from pyinfra_ssm.emulator.terminal import Terminal

_LOG = logging.getLogger(__name__)
_FROM_CLIENT = {MessageType.INPUT, MessageType.ACKNOWLEDGE}
_OPENING_LIMIT = 10.0  # seconds for the text frame with the token
_CLOSING_LIMIT = 1.0  # for the client's closing frame
_WATCH_PERIOD = 0.25


class Session:
    """Made by StartSession. The agent starts when the first client socket has shown its token."""

    def __init__(self, account: Account, host: Host, document: SessionDocument) -> None:
        self.session_id = f"user-{secrets.token_hex(9)[:17]}"
        self.token = secrets.token_urlsafe(32)
        self.host = host
        self.has_ended = False
        self._account = account
        self._document = document
        self._socket: ClientSocket | None = None
        self._agent: Agent | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._started = self._active = _now()

    def renew_token(self) -> str:
        self.token = secrets.token_urlsafe(32)
        return self.token

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one client socket until it closes."""
        largest = self._account.faults.max_frame_bytes or 0
        websocket = web.WebSocketResponse(max_msg_size=largest, timeout=_CLOSING_LIMIT)
        await asyncio.sleep(2 * self._account.faults.delay_ms / 1000)  # TCP, then the upgrade
        await websocket.prepare(request)
        if not await self._is_opened(websocket) or self.has_ended:
            await websocket.close(code=WSCloseCode.POLICY_VIOLATION)
            return websocket
        if self._socket is not None:
            self._socket.abort()
        self._socket = socket = ClientSocket(self._account, request, websocket, self._to_agent)
        self._start_or_resume()
        await socket.serve()
        if self._socket is socket:
            self._socket = None
            self._tell_agent(MessageType.PAUSE_PUBLICATION)
        return websocket

    async def cut(self) -> None:
        """Close the client's socket; the session lives on."""
        if self._socket is not None:
            await self._socket.cut(self._account.faults.close_code)

    def terminate(self, output: str = "") -> None:
        """End the session: the client hears at once, the agent when it next listens (08b)."""
        if self.has_ended:
            return
        self._tell_client_closed(output)
        self._tell_agent(MessageType.CHANNEL_CLOSED)

    async def lose_agent(self) -> None:
        """Go on with nobody behind it, as if the agent had never been heard of again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def die(self) -> None:
        """Go without a word, as in a crash; kill what runs."""
        self.has_ended = True
        await self.lose_agent()
        if self._socket is not None:
            self._socket.abort()

    def _start_or_resume(self) -> None:
        if self._agent is not None:
            self._tell_agent(MessageType.START_PUBLICATION)
            return
        self._agent = Agent(self._program(), self._handshake(), self._to_client, self._room)
        lives = (self._live(self._agent), self._watch())
        self._tasks = [asyncio.create_task(each) for each in lives]

    async def _live(self, agent: Agent) -> None:
        try:
            output = await agent.run()
        except Exception:
            _LOG.exception("session %s: the emulated agent failed", self.session_id)
            output = "the emulator failed; see its standard error"
        if not self.has_ended:
            self._tell_client_closed(output)

    async def _watch(self) -> None:
        """Apply the account's limits on idle time and on life."""
        while not self.has_ended:
            await asyncio.sleep(_WATCH_PERIOD)
            faults, now = self._account.faults, _now()
            if faults.idle_timeout_s is not None and now - self._active > faults.idle_timeout_s:
                self.terminate("Your session timed out due to inactivity.")
            if faults.max_session_s is not None and now - self._started > faults.max_session_s:
                self.terminate("Your session reached its maximum duration.")

    def _program(self) -> Program:
        document, faults = self._document, self._account.faults
        place = self._account.new_place(self.host, elevated=document.elevated)
        match document.session_type:
            case SessionType.PORT:
                return Port(document.port, faults)
            case SessionType.NON_INTERACTIVE:
                separate = document.separate_output.lower() == "true"
                return NonInteractive(place, document.command, separate=separate)
        return Terminal(place, _shell(document.command), faults)

    def _handshake(self) -> Handshake | None:
        kind, faults = self._document.session_type, self._account.faults
        asked_for = faults.kms_key is not None or faults.customer_message
        if not asked_for and kind in (SessionType.SHELL, SessionType.INTERACTIVE):
            return None  # recorded: nothing to agree on, so the agent skips it
        return Handshake(
            kind,
            {"portNumber": self._document.port} if kind is SessionType.PORT else None,
            key=faults.kms_key,
            customer_message=faults.customer_message,
            key_service=self._account.key_service,
            context={
                "aws:ssm:SessionId": self.session_id,
                "aws:ssm:TargetId": self.host.instance.instance_id,
            },
        )

    async def _is_opened(self, websocket: web.WebSocketResponse) -> bool:
        with suppress(TimeoutError, ValueError, TypeError, LookupError):
            opening = await websocket.receive(_OPENING_LIMIT)
            await asyncio.sleep(self._account.faults.delay_ms / 1000)
            if opening.type is WSMsgType.TEXT:
                return bool(json.loads(opening.data)["TokenValue"] == self.token)
        return False

    async def _to_agent(self, raw: bytes) -> None:
        self._active = _now()
        with suppress(ProtocolError):  # the agent logs "Invalid message" and goes on
            message = AgentMessage.decode(raw)
            if self._agent is not None and message.message_type in _FROM_CLIENT:
                self._agent.inbox.put_nowait(message)

    def _to_client(self, raw: bytes) -> None:
        self._active = _now()
        if self._socket is not None:
            self._socket.send(raw, impaired=True)

    async def _room(self) -> None:
        if self._socket is not None:
            await self._socket.room()

    def _tell_agent(self, message_type: MessageType) -> None:
        if self._agent is not None:
            self._agent.inbox.put_nowait(_service_message(message_type, {}))

    def _tell_client_closed(self, output: str) -> None:
        self.has_ended = True
        if self._socket is not None:
            members = {
                "MessageId": str(uuid4()),
                "CreatedDate": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                "DestinationId": "",
                "SessionId": self.session_id,
                "MessageType": MessageType.CHANNEL_CLOSED,
                "SchemaVersion": 1,
                "Output": output,
            }
            closed = _service_message(MessageType.CHANNEL_CLOSED, members)
            self._socket.send(closed.encode(), impaired=False)


def _shell(command: str) -> Sequence[str]:
    return ["sh", "-c", command] if command.strip() else ["sh"]


def _service_message(message_type: MessageType, members: dict[str, object]) -> AgentMessage:
    return AgentMessage(
        message_type,
        uuid4(),
        json.dumps(members).encode(),
        flags=Flags.SYN | Flags.FIN,
        created=int(datetime.now(UTC).timestamp() * 1000),
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
