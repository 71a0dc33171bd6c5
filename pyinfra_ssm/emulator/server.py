"""The HTTP server: the AWS endpoint, the websockets, and the emulator's own control surface.

POST /                              an API call of SSM, KMS (JSON 1.1) or EC2 (query)
GET  /v1/data-channel/ID            a session's websocket
GET  /calls                         every API call so far: [{"action", "parameters"}, ...]
GET  /sessions                      [{"session_id", "instance_id", "has_ended"}, ...]
GET  /faults    PATCH /faults       what goes wrong; a patch changes the members it names
PATCH /instances/ID                 changes members of an instance: state, ping, tags, ...
POST /cut                           closes every client socket; the sessions live on
POST /agent-restart/ID              {"seconds"}: how long it is away
POST /reboot/ID                     {"seconds"}, or nothing: what the faults say
POST /reset                         as at the start: no calls, no sessions, the first faults
"""

import asyncio
import json
from dataclasses import replace

from aiohttp import web

from pyinfra_ssm.emulator import ec2
from pyinfra_ssm.emulator.account import Account, Host
from pyinfra_ssm.emulator.api import SystemsManager
from pyinfra_ssm.emulator.errors import ApiError

_JSON = "application/x-amz-json-1.1"
_KMS_PREFIX = "TrentService"


class Server:
    """Serves one account on a loopback port that the kernel picks, or on `port`."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._api = SystemsManager(account, self._stream_url)
        self._runner: web.AppRunner | None = None
        self._address = ""

    async def start(self, port: int = 0) -> str:
        """Start serving; return the endpoint URL."""
        app = web.Application(client_max_size=16 * 2**20)
        app.add_routes(
            [
                web.post("/", self._call),
                web.get("/v1/data-channel/{session_id}", self._data_channel),
                web.get("/calls", self._get_calls),
                web.get("/sessions", self._get_sessions),
                web.get("/faults", self._get_faults),
                web.patch("/faults", self._patch_faults),
                web.patch("/instances/{instance_id}", self._patch_instance),
                web.post("/cut", self._cut),
                web.post("/reset", self._reset),
                web.post("/agent-restart/{instance_id}", self._agent_restart),
                web.post("/reboot/{instance_id}", self._reboot),
            ]
        )
        self._runner = web.AppRunner(app, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        host, bound = self._runner.addresses[0][:2]
        self._address = f"{host}:{bound}"
        return f"http://{self._address}"

    async def stop(self) -> None:
        """End the sessions, then the server."""
        await self._account.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _stream_url(self, session_id: str) -> str:
        return f"ws://{self._address}/v1/data-channel/{session_id}?role=publish_subscribe"

    async def _call(self, request: web.Request) -> web.Response:
        delay = self._account.faults.delay_ms / 1000
        await asyncio.sleep(delay)
        try:
            is_json = "X-Amz-Target" in request.headers
            response = await (self._call_json(request) if is_json else self._call_query(request))
        finally:
            await asyncio.sleep(delay)
        return response

    async def _call_json(self, request: web.Request) -> web.Response:
        prefix, _, action = request.headers["X-Amz-Target"].partition(".")
        try:
            parameters = json.loads(await request.read())
            self._account.record(action, parameters)
            if prefix == _KMS_PREFIX:
                answer = await self._account.own_kms.call(action, parameters)
            else:
                answer = await self._api.call(action, parameters)
        except ApiError as error:
            answer = {"__type": error.code, "message": error.message, "Message": error.message}
            return web.json_response(answer, status=error.status, content_type=_JSON)
        return web.json_response(answer, content_type=_JSON)

    async def _call_query(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post()).items()}
        action = form.pop("Action", "")
        try:
            self._account.record(action, form)
            if action != "DescribeInstances":
                raise ApiError("InvalidAction", f"the emulator's EC2 has no {action}")
            body, status = ec2.describe_instances(self._account, form), 200
        except ApiError as error:
            status, body = ec2.error_document(error)
        return web.Response(body=body, status=status, content_type="text/xml")

    async def _data_channel(self, request: web.Request) -> web.StreamResponse:
        session = self._account.sessions.get(request.match_info["session_id"])
        if session is None:
            raise web.HTTPForbidden(text="no such session")
        if self._account.refuses_socket():
            raise web.HTTPServiceUnavailable(text="try again")
        signed = "/ssmmessages/aws4_request" in request.headers.get("Authorization", "")
        if self._account.faults.signature_wanted and not signed:
            raise web.HTTPForbidden(text="the request is not signed")
        return await session.serve(request)

    async def _get_calls(self, request: web.Request) -> web.Response:
        return web.json_response(self._account.calls)

    async def _get_sessions(self, request: web.Request) -> web.Response:
        return web.json_response(
            [
                {
                    "session_id": each.session_id,
                    "instance_id": each.host.instance.instance_id,
                    "has_ended": each.has_ended,
                }
                for each in self._account.sessions.values()
            ]
        )

    async def _get_faults(self, request: web.Request) -> web.Response:
        return web.json_response(self._account.faults.to_json())

    async def _patch_faults(self, request: web.Request) -> web.Response:
        try:
            self._account.change_faults(await request.json())
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        return await self._get_faults(request)

    async def _patch_instance(self, request: web.Request) -> web.Response:
        host = self._host(request.match_info["instance_id"])
        try:
            host.instance = replace(host.instance, **await request.json())
        except (ValueError, TypeError) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        return web.json_response({})

    async def _cut(self, request: web.Request) -> web.Response:
        await asyncio.gather(*(each.cut() for each in self._account.sessions.values()))
        return web.json_response({})

    async def _reset(self, request: web.Request) -> web.Response:
        await self._account.reset()
        return web.json_response({})

    async def _agent_restart(self, request: web.Request) -> web.Response:
        host = self._host(request.match_info["instance_id"])
        self._account.restart_agent(host, (await request.json())["seconds"])
        return web.json_response({})

    async def _reboot(self, request: web.Request) -> web.Response:
        host = self._host(request.match_info["instance_id"])
        seconds = (await request.json()).get("seconds", self._account.faults.reboot_s)
        await self._account.reboot(host, seconds)
        return web.json_response({})

    def _host(self, instance_id: str) -> Host:
        try:
            return self._account.hosts[instance_id]
        except KeyError:
            raise web.HTTPNotFound(text=f"no instance {instance_id}") from None
