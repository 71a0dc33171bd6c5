"""A Port session: bytes between the client and a listener on the instance, clean both ways."""

import asyncio
from contextlib import suppress

from pyinfra_ssm._messages import AgentMessage, PayloadType, SessionFlag
from pyinfra_ssm._payloads import decode_flag
from pyinfra_ssm.emulator.agent import Agent
from pyinfra_ssm.emulator.faults import Faults
from pyinfra_ssm.emulator.terminal import PAUSE, PAYLOAD_SIZE

_REFUSED = (
    "document process failed unexpectedly: ipc messaging received timeout signal , "
    "check [ssm-document-worker]/[ssm-session-worker] log for crash reason"
)


class Port:
    """Connects to the loopback of this machine: right for this machine, and for a container that
    shares its network."""

    def __init__(self, port: str, faults: Faults) -> None:
        self._port = port
        self._faults = faults
        self._writer: asyncio.StreamWriter | None = None
        self._ended = asyncio.Event()

    async def run(self, agent: Agent) -> str:
        try:
            reader, self._writer = await asyncio.open_connection("127.0.0.1", int(self._port))
        except (OSError, ValueError):
            await asyncio.sleep(self._faults.port_refused_s)
            return _REFUSED
        pump = asyncio.create_task(_pump(agent, reader))
        ended = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait([pump, ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            pump.cancel()
            ended.cancel()
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        return ""

    async def handle(self, message: AgentMessage) -> bool:
        if self._writer is None:
            return False
        if message.payload_type == PayloadType.FLAG:
            if decode_flag(message.payload) == SessionFlag.TERMINATE_SESSION:
                self._ended.set()
        elif message.payload_type == PayloadType.OUTPUT:
            self._writer.write(message.payload)
            with suppress(OSError):
                await self._writer.drain()
        return True


async def _pump(agent: Agent, reader: asyncio.StreamReader) -> None:
    while True:
        if agent.is_active:
            try:
                read = await reader.read(PAYLOAD_SIZE)
            except OSError:
                return
            if not read:
                return
            await agent.output(PayloadType.OUTPUT, read)
        await asyncio.sleep(PAUSE)
