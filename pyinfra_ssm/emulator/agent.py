"""The agent's worker for one session: its data channel, its handshake, its program's life."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol
from uuid import uuid4

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import AgentMessage, MessageType, PayloadType
from pyinfra_ssm._payloads import Acknowledgement
from pyinfra_ssm.emulator.agent_channel import RESEND_TICK, AgentChannel, Arrival
from pyinfra_ssm.emulator.handshake import Handshake, HandshakeError
from pyinfra_ssm.emulator.kms import Cipher

_DRAIN_LIMIT = 2.0  # how long the agent waits for acknowledgements before it reports the end
_DRAIN_LOOK = 0.01
_ENCRYPTED_OUTPUT = {PayloadType.OUTPUT, PayloadType.STDERR, PayloadType.EXIT_CODE}


class Program(Protocol):
    """What a session runs: a terminal, a command, a connection to a port."""

    async def run(self, agent: "Agent") -> str:
        """Run to the end; return the text for channel_closed. Cancelled to terminate it."""

    async def handle(self, message: AgentMessage) -> bool:
        """Take one frame of input, in order; False while not ready, which leaves it unacked."""


class Agent:
    """Frames from the service go into `inbox`; what the agent sends goes to `transmit`."""

    def __init__(
        self,
        program: Program,
        handshake: Handshake | None,
        transmit: Callable[[bytes], None],
        room: Callable[[], Awaitable[None]],
    ) -> None:
        self.inbox: asyncio.Queue[AgentMessage] = asyncio.Queue()
        self._program = program
        self._handshake = handshake
        self._transmit = transmit
        self._room = room
        self._channel = AgentChannel(uuid4, lambda: time.time_ns() // 1_000_000)
        self._cancelled = asyncio.Event()
        self._cipher: Cipher | None = None

    @property
    def is_active(self) -> bool:
        """Whether publication is not paused."""
        return not self._channel.paused

    async def output(self, payload_type: PayloadType, payload: bytes) -> None:
        """Send one payload to the client, encrypted if the session is."""
        if self._cipher is not None and payload and payload_type in _ENCRYPTED_OUTPUT:
            payload = self._cipher.encrypt(payload)
        self._channel.send(payload_type, payload, _now())
        self._flush()
        await self._room()

    async def run(self) -> str:
        """Live until the program ends or the service closes the channel; return what was wrong."""
        readers = [asyncio.create_task(each) for each in (self._read(), self._resend())]
        life = asyncio.create_task(self._live())
        cancelled = asyncio.create_task(self._cancelled.wait())
        try:
            await asyncio.wait([life, cancelled], return_when=asyncio.FIRST_COMPLETED)
            if not life.done():
                life.cancel()
            await asyncio.wait([life])
            await self._drain()
        finally:
            for task in (*readers, life, cancelled):
                task.cancel()
            await asyncio.gather(*readers, life, cancelled, return_exceptions=True)
        return "" if life.cancelled() else life.result()

    async def _live(self) -> str:
        if self._handshake is not None:
            try:
                self._cipher = await self._handshake.perform(self.output)
            except HandshakeError as error:
                return str(error)
        try:
            return await self._program.run(self)
        except OSError as error:
            return f"Unable to start command: {error}\n"

    async def _read(self) -> None:
        """Handle frames one after another: one that blocks holds up all that follow it."""
        while True:
            message = await self.inbox.get()
            try:
                await self._receive(message)
            except ProtocolError:
                continue  # the agent logs "Invalid message" and goes on
            self._flush()

    async def _receive(self, message: AgentMessage) -> None:
        match message.message_type:
            case MessageType.INPUT:
                await self._receive_input(message)
            case MessageType.ACKNOWLEDGE:
                self._channel.acknowledged(Acknowledgement.decode(message.payload), _now())
            case MessageType.CHANNEL_CLOSED:
                self._cancelled.set()
            case MessageType.PAUSE_PUBLICATION:
                self._channel.paused = True
            case MessageType.START_PUBLICATION:
                self._channel.paused = False

    async def _receive_input(self, message: AgentMessage) -> None:
        if self._channel.receive(message) is not Arrival.NEXT:
            return
        following: AgentMessage | None = message
        while following is not None and await self._handle(following):
            self._channel.accept(following)
            self._flush()
            following = self._channel.next_kept()

    async def _handle(self, message: AgentMessage) -> bool:
        if self._handshake is not None and not self._handshake.is_complete:
            # Recorded: anything but handshake frames is acknowledged now, and lost.
            await self._handshake.handle(message)
            return True
        if self._cipher is not None and message.payload_type == PayloadType.OUTPUT:
            message = self._cipher.decrypted(message)
        return await self._program.handle(message)

    async def _resend(self) -> None:
        while True:
            await asyncio.sleep(RESEND_TICK)
            self._channel.tick(_now())
            self._flush()

    async def _drain(self) -> None:
        limit = _now() + _DRAIN_LIMIT
        while not self._channel.is_drained and _now() < limit:
            await asyncio.sleep(_DRAIN_LOOK)

    def _flush(self) -> None:
        for raw in self._channel.data_to_send():
            self._transmit(raw)


def _now() -> float:
    return asyncio.get_running_loop().time()
