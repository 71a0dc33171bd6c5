"""A session on a terminal: the shell of Standard_Stream, the command of InteractiveCommands."""

import asyncio
import json
from collections.abc import Sequence

from pyinfra_ssm._errors import ProtocolError
from pyinfra_ssm._messages import AgentMessage, PayloadType
from pyinfra_ssm.emulator.agent import Agent
from pyinfra_ssm.emulator.descriptors import Descriptor
from pyinfra_ssm.emulator.faults import Faults
from pyinfra_ssm.emulator.machines import Place
from pyinfra_ssm.emulator.output_filter import OutputFilter
from pyinfra_ssm.emulator.processes import kill, set_size, start_in_terminal

PAYLOAD_SIZE = 1024  # bytes that the agent reads, and sends, at a time
PAUSE = 0.001  # seconds that it then sleeps: about 0.7 MB/s


class Terminal:
    def __init__(self, place: Place, argv: Sequence[str], faults: Faults) -> None:
        self._place = place
        self._argv = argv
        self._faults = faults
        self._terminal: Descriptor | None = None

    async def run(self, agent: Agent) -> str:
        await asyncio.sleep(self._faults.terminal_delay_s)
        process, terminal = await start_in_terminal(self._place, self._argv)
        self._terminal = terminal
        try:
            await asyncio.sleep(self._faults.start_delay_s)
            await pump(agent, terminal)
        finally:
            await kill(self._place, process)
            terminal.close()
        return ""

    async def handle(self, message: AgentMessage) -> bool:
        """Write input to the terminal; wait while it takes none, as the agent does."""
        if self._terminal is None:
            return False
        if message.payload_type == PayloadType.OUTPUT:
            await self._terminal.write(message.payload)
        elif message.payload_type == PayloadType.SIZE:
            set_size(self._terminal, *_decode_size(message.payload))
        return True


async def pump(agent: Agent, source: Descriptor) -> None:
    """Send what `source` gives until it ends, with the agent's pause; wait while paused."""
    output_filter = OutputFilter()
    while True:
        if agent.is_active:
            read = await source.read(PAYLOAD_SIZE)
            if not read:
                return
            await agent.output(PayloadType.OUTPUT, output_filter.feed(read))
        await asyncio.sleep(PAUSE)


def _decode_size(payload: bytes) -> tuple[int, int]:
    """Return columns and rows."""
    try:
        size = json.loads(payload)
        return int(size["cols"]), int(size["rows"])
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"terminal size is {payload[:80]!r}") from error
