"""A NonInteractiveCommands session: one command, no shell, no terminal, no stdin."""

import asyncio
import os
import shlex
import signal
import tempfile
from typing import IO

from pyinfra_ssm._messages import AgentMessage, PayloadType
from pyinfra_ssm.emulator.agent import Agent
from pyinfra_ssm.emulator.descriptors import Descriptor
from pyinfra_ssm.emulator.machines import Place
from pyinfra_ssm.emulator.output_filter import OutputFilter
from pyinfra_ssm.emulator.processes import Process, kill, send_signal, start
from pyinfra_ssm.emulator.terminal import PAUSE, PAYLOAD_SIZE

# Input bytes that become signals; all other input is acknowledged and dropped.
_SIGNALS = {0x03: signal.SIGINT, 0x1C: signal.SIGQUIT}
_ERROR_DELAY = 1.0  # recorded: the text of a failed start comes a second after its exit code


class NonInteractive:
    """With `separate`: streams apart, no pauses, an exit code, and loss when the socket is cut.

    Without: the output comes when the command has ended, both streams in one, and no exit code.
    """

    def __init__(self, place: Place, command: str, *, separate: bool) -> None:
        self._place = place
        self._command = command
        self._separate = separate
        self._process: Process | None = None
        self._interrupted = False

    async def run(self, agent: Agent) -> str:
        try:
            argv = shlex.split(self._command, comments=True)
        except ValueError as error:
            return f"Unable to start command: Failed to parse commands input: {error}\n"
        if not argv or not await self._place.has_program(argv[0]):
            await self._report_missing(agent, argv[0] if argv else "")
            return ""
        run = self._run_separate if self._separate else self._run_merged
        try:
            await run(agent, argv)
        finally:
            if self._process is not None:
                await kill(self._place, self._process)
        return ""

    async def handle(self, message: AgentMessage) -> bool:
        """Turn a control byte into its signal, and then wait for the end of the command."""
        codes = [_SIGNALS[byte] for byte in message.payload if byte in _SIGNALS]
        if message.payload_type != PayloadType.OUTPUT or not codes or self._process is None:
            return True
        self._interrupted = True
        await send_signal(self._place, self._process, codes[0])
        await self._process.wait()
        return True

    async def _report_missing(self, agent: Agent, program: str) -> None:
        if self._separate:
            await agent.output(PayloadType.EXIT_CODE, b"EXIT_CODE: 1")
        await asyncio.sleep(_ERROR_DELAY)
        text = f'exec: "{program}": executable file not found in $PATH'
        await agent.output(PayloadType.STDERR, text.encode())

    async def _start(self, argv: list[str], stdout: int, stderr: int) -> Process:
        self._process = await start(self._place, argv, stdout=stdout, stderr=stderr)
        return self._process

    async def _run_separate(self, agent: Agent, argv: list[str]) -> None:
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        sources = [Descriptor(out), Descriptor(err)]
        try:
            try:
                process = await self._start(argv, out_end, err_end)
            finally:
                os.close(out_end)
                os.close(err_end)
            kinds = (PayloadType.OUTPUT, PayloadType.STDERR)
            await asyncio.gather(*map(_pump_until_paused, (agent, agent), sources, kinds))
            code = await process.wait()
        finally:
            for source in sources:
                source.close()
        if agent.is_active:
            await agent.output(PayloadType.EXIT_CODE, b"EXIT_CODE: %d" % self._exit_code(code))

    def _exit_code(self, code: int) -> int:
        """Return what the agent makes of an ending: -1 for a signal, 1 after an interrupt."""
        return 1 if self._interrupted else max(code, -1)

    async def _run_merged(self, agent: Agent, argv: list[str]) -> None:
        with tempfile.TemporaryFile() as output:
            process = await self._start(argv, output.fileno(), output.fileno())
            await process.wait()
            output.seek(0)
            await _pump_file(agent, output)


async def _pump_until_paused(agent: Agent, source: Descriptor, kind: PayloadType) -> None:
    """Send output without pauses, and give up for good on finding the channel paused (07b)."""
    output_filter = OutputFilter()
    while agent.is_active:
        read = await source.read(PAYLOAD_SIZE)
        if not read:
            return
        await agent.output(kind, output_filter.feed(read))


async def _pump_file(agent: Agent, source: IO[bytes]) -> None:
    output_filter = OutputFilter()
    while True:
        if agent.is_active:
            read = source.read(PAYLOAD_SIZE)
            if not read:
                return
            await agent.output(PayloadType.OUTPUT, output_filter.feed(read))
        await asyncio.sleep(PAUSE)
