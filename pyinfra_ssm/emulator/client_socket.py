"""One websocket of a client, and the line in both directions."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import WSMsgType, web

from pyinfra_ssm.emulator.account import Account
from pyinfra_ssm.emulator.link import Link


class ClientSocket:
    """What comes from the client goes to `received`; send() is for the other direction."""

    def __init__(
        self,
        account: Account,
        request: web.Request,
        websocket: web.WebSocketResponse,
        received: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._account = account
        self._request = request
        self._websocket = websocket
        self._down = Link(self._deliver, lambda: account.faults, account.random)
        self._up = Link(received, lambda: account.faults, account.random)
        self._lines: list[asyncio.Task[None]] = []

    async def serve(self) -> None:
        """Carry messages until the socket is closed, by either side."""
        self._lines = [asyncio.create_task(link.run()) for link in (self._down, self._up)]
        age = self._account.faults.close_every_s
        timer = asyncio.create_task(self._cut_after(age)) if age is not None else None
        try:
            async for message in self._websocket:
                if message.type is WSMsgType.BINARY:
                    self._up.push(message.data, impaired=True)
        finally:
            self._drop_lines()
            if timer is not None:
                timer.cancel()

    def send(self, raw: bytes, *, impaired: bool) -> None:
        """Send a message; those of the service itself are not `impaired`, only late."""
        self._down.push(raw, impaired=impaired)

    async def room(self) -> None:
        """Wait until the line to the client takes more."""
        await self._down.room()

    async def cut(self, code: int) -> None:
        """Close the socket; what was under way is lost."""
        self._drop_lines()
        await self._websocket.close(code=code, message=b"Bye")

    def abort(self) -> None:
        """Drop the connection without a closing frame."""
        self._drop_lines()
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _cut_after(self, age: float) -> None:
        await asyncio.sleep(age)
        await self.cut(self._account.faults.close_code)

    async def _deliver(self, raw: bytes) -> None:
        if not self._websocket.closed:
            try:
                await self._websocket.send_bytes(raw)
            except ConnectionError:
                self.abort()

    def _drop_lines(self) -> None:
        for line in self._lines:
            line.cancel()
