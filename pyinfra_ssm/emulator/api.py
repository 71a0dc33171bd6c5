"""The actions of Systems Manager that the emulator knows, as botocore calls them (JSON 1.1)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pyinfra_ssm.emulator.account import ACCOUNT_ID, Account, Host
from pyinfra_ssm.emulator.documents import SHELL_DOCUMENT
from pyinfra_ssm.emulator.errors import ApiError
from pyinfra_ssm.emulator.handshake import AGENT_VERSION
from pyinfra_ssm.emulator.pages import page
from pyinfra_ssm.emulator.run_command import Invocation, time_limit
from pyinfra_ssm.emulator.session import Session

Parameters = Mapping[str, Any]
_MOST_INSTANCES = 50
_RUN_SHELL_SCRIPT = "AWS-RunShellScript"


class SystemsManager:
    """`stream_url` returns the websocket's address for a session id."""

    def __init__(self, account: Account, stream_url: Callable[[str], str]) -> None:
        self._account = account
        self._stream_url = stream_url
        self._actions: dict[str, Callable[[Parameters], Awaitable[dict[str, Any]]]] = {
            "StartSession": self._start_session,
            "ResumeSession": self._resume_session,
            "TerminateSession": self._terminate_session,
            "GetConnectionStatus": self._get_connection_status,
            "DescribeInstanceInformation": self._describe_instance_information,
            "SendCommand": self._send_command,
            "GetCommandInvocation": self._get_command_invocation,
        }

    async def call(self, action: str, parameters: Parameters) -> dict[str, Any]:
        """Answer one call, or raise ApiError."""
        if action not in self._actions:
            raise ApiError("UnknownOperationException", f"the emulator has no {action}")
        return await self._actions[action](parameters)

    async def _start_session(self, parameters: Parameters) -> dict[str, Any]:
        host = self._account.connected_host(parameters["Target"])
        name = parameters.get("DocumentName", SHELL_DOCUMENT)
        document = self._account.documents.get(name)
        if document is None:
            raise ApiError("InvalidDocument", f"Document with name {name} does not exist.")
        try:
            filled = document.fill(parameters.get("Parameters", {}))
        except ValueError as error:
            raise ApiError("InvalidParameters", str(error)) from error
        session = Session(self._account, host, filled)
        self._account.sessions[session.session_id] = session
        return self._opening(session)

    async def _resume_session(self, parameters: Parameters) -> dict[str, Any]:
        session = self._session(parameters["SessionId"])
        if session.has_ended:
            # The reference plug-in takes an answer without a token as the end (source).
            return {"SessionId": session.session_id}
        session.renew_token()
        return self._opening(session)

    async def _terminate_session(self, parameters: Parameters) -> dict[str, Any]:
        session = self._session(parameters["SessionId"])
        session.terminate()
        return {"SessionId": session.session_id}

    def _session(self, session_id: str) -> Session:
        session = self._account.sessions.get(session_id)
        if session is None:
            raise ApiError("DoesNotExistException", f"Session {session_id} does not exist")
        return session

    def _opening(self, session: Session) -> dict[str, Any]:
        return {
            "SessionId": session.session_id,
            "TokenValue": session.token,
            "StreamUrl": self._stream_url(session.session_id),
        }

    async def _get_connection_status(self, parameters: Parameters) -> dict[str, Any]:
        host = self._account.hosts.get(parameters["Target"])
        is_connected = host is not None and self._account.is_connected(host)
        status = "connected" if is_connected else "notconnected"
        return {"Target": parameters["Target"], "Status": status}

    async def _describe_instance_information(self, parameters: Parameters) -> dict[str, Any]:
        filters = {each["Key"]: each["Values"] for each in parameters.get("Filters", [])}
        rows = [
            self._information(host)
            for host in self._account.hosts.values()
            if host.instance.state != "terminated" and self._matches(host, filters)
        ]
        size = min(parameters.get("MaxResults", 50), self._account.faults.page_size)
        rows, token = page(rows, size, parameters.get("NextToken"), "InvalidNextToken")
        return {"InstanceInformationList": rows} | ({"NextToken": token} if token else {})

    def _ping(self, host: Host) -> str:
        if host.instance.ping != "Online" or self._account.is_connected(host):
            return host.instance.ping
        return "ConnectionLost"

    def _matches(self, host: Host, filters: Mapping[str, Sequence[str]]) -> bool:
        for key, values in filters.items():
            if key == "InstanceIds":
                value: str | None = host.instance.instance_id
            elif key == "PingStatus":
                value = self._ping(host)
            elif key.startswith("tag:"):
                value = host.instance.tags.get(key.removeprefix("tag:"))
            else:
                raise ApiError("InvalidFilterKey", f"the emulator cannot filter by {key}")
            if value not in values:
                return False
        return True

    def _information(self, host: Host) -> dict[str, Any]:
        return {
            "InstanceId": host.instance.instance_id,
            "PingStatus": self._ping(host),
            "LastPingDateTime": datetime.now(UTC).timestamp(),
            "AgentVersion": AGENT_VERSION,
            "IsLatestVersion": True,
            "PlatformType": "Linux",
            "PlatformName": "Ubuntu",
            "PlatformVersion": "24.04",
            "ResourceType": "EC2Instance",
            "IPAddress": host.instance.private_ip,
            "ComputerName": f"ip-{host.instance.private_ip.replace('.', '-')}.ec2.internal",
        }

    async def _send_command(self, parameters: Parameters) -> dict[str, Any]:
        hosts = self._command_hosts(parameters)
        texts: Mapping[str, Sequence[str]] = parameters.get("Parameters", {})
        if parameters["DocumentName"] != _RUN_SHELL_SCRIPT:
            raise ApiError("InvalidDocument", f"the emulator runs {_RUN_SHELL_SCRIPT} only")
        size = sum(len(line.encode()) for lines in texts.values() for line in lines)
        if size > self._account.faults.max_command_bytes:
            raise ApiError("MaxDocumentSizeExceeded", f"the parameters have {size} bytes")
        command_id = str(uuid4())
        for host in hosts:
            self._account.invocations[command_id, host.instance.instance_id] = self._invoke(
                host, texts
            )
        return {"Command": _command(command_id, parameters, hosts)}

    def _invoke(self, host: Host, texts: Mapping[str, Sequence[str]]) -> Invocation:
        invocation = Invocation(
            host,
            self._account.new_place(host, elevated=True),
            "\n".join(texts.get("commands", [])),
            (texts.get("workingDirectory") or [""])[0],
            time_limit((texts.get("executionTimeout") or [""])[0]),
        )
        invocation.hide(self._account.faults.invocation_missing)
        return invocation

    def _command_hosts(self, parameters: Parameters) -> list[Host]:
        """Return the hosts of SendCommand; raise what it answers if one cannot be reached."""
        ids = parameters.get("InstanceIds", [])
        if len(ids) > _MOST_INSTANCES:
            raise ApiError("ValidationException", f"more than {_MOST_INSTANCES} instance ids")
        known = self._account.hosts
        filters = {each["Key"]: each["Values"] for each in parameters.get("Targets", [])}
        bad = [each for each in ids if each not in known or not self._is_up(known[each])]
        if bad or not (ids or filters):
            raise ApiError(
                "InvalidInstanceId",
                f"Instances {bad} not in a valid state for account {ACCOUNT_ID}",
            )
        if ids:
            return [known[each] for each in ids]
        return [h for h in known.values() if self._is_up(h) and self._matches(h, filters)]

    def _is_up(self, host: Host) -> bool:
        return self._account.is_connected(host)

    async def _get_command_invocation(self, parameters: Parameters) -> dict[str, Any]:
        key = parameters["CommandId"], parameters["InstanceId"]
        invocation = self._account.invocations.get(key)
        if invocation is None or invocation.is_hidden():
            raise ApiError("InvocationDoesNotExist", "An error occurred")
        late = self._account.faults.late_in_progress
        report = invocation.report(late_in_progress=late)
        ended = invocation.ended.isoformat() if invocation.ended else ""
        return {
            "CommandId": parameters["CommandId"],
            "InstanceId": parameters["InstanceId"],
            "DocumentName": _RUN_SHELL_SCRIPT,
            "PluginName": "aws:runShellScript",
            "ExecutionStartDateTime": invocation.started.isoformat(),
            "ExecutionEndDateTime": ended,
            **report,
        }


def _command(command_id: str, parameters: Parameters, hosts: Sequence[Host]) -> dict[str, Any]:
    return {
        "CommandId": command_id,
        "DocumentName": parameters["DocumentName"],
        "Comment": parameters.get("Comment", ""),
        "Parameters": parameters.get("Parameters", {}),
        "InstanceIds": [host.instance.instance_id for host in hosts],
        "RequestedDateTime": datetime.now(UTC).timestamp(),
        "Status": "Pending",
        "StatusDetails": "Pending",
        "TargetCount": len(hosts),
        "CompletedCount": 0,
        "ErrorCount": 0,
    }
