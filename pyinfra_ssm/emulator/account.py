"""The state of the emulated account: its instances, sessions, commands, faults and API history."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyinfra_ssm.emulator.documents import DOCUMENTS, SHELL_DOCUMENT, SessionDocument
from pyinfra_ssm.emulator.errors import ApiError
from pyinfra_ssm.emulator.faults import Faults
from pyinfra_ssm.emulator.instances import Instance
from pyinfra_ssm.emulator.kms import KeyService, OwnKms, RemoteKms
from pyinfra_ssm.emulator.machines import Container, Machine, Place, ThisMachine, reap

if TYPE_CHECKING:
    from pyinfra_ssm.emulator.run_command import Invocation
    from pyinfra_ssm.emulator.session import Session

ACCOUNT_ID = "000000000000"
REGION = "us-east-1"


@dataclass
class Host:
    """An instance with the machine that runs its commands."""

    instance: Instance
    machine: Machine
    # Run Command's limit in the agent: five commands at once.
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(5))
    offline_until: float = 0.0  # in the event loop's time
    at_first: Instance = field(init=False)

    def __post_init__(self) -> None:
        self.at_first = self.instance


class Account:
    def __init__(
        self, faults: Faults, documents: Mapping[str, SessionDocument] | None = None
    ) -> None:
        self.faults = self._first_faults = faults
        self.documents = {**DOCUMENTS, **(documents or {})}
        self.hosts: dict[str, Host] = {}
        self.sessions: dict[str, Session] = {}
        self.invocations: dict[tuple[str, str], Invocation] = {}
        self.calls: list[dict[str, Any]] = []
        self.own_kms = OwnKms()
        self.mark = uuid4().hex  # begins the marks of all our processes
        self.random = Random(faults.seed)
        self._throttle_left = faults.throttle_first
        self._sockets_refused = 0
        self._numbers = count(1)

    @property
    def key_service(self) -> KeyService:
        url = self.faults.kms_endpoint_url
        return RemoteKms(url) if url is not None else self.own_kms

    async def add(self, instances: Sequence[Instance], endpoint_url: str) -> None:
        """Add instances; RuntimeError if a container does not answer."""
        for instance in instances:
            if instance.container is None:
                reboot_url = f"{endpoint_url}/reboot/{instance.instance_id}"
                machine: Machine = ThisMachine(instance.environment, reboot_url)
            else:
                machine = Container(instance.container, instance.engine, instance.environment)
                await machine.find_user()
            self.hosts[instance.instance_id] = Host(instance, machine)

    def change_faults(self, changes: Mapping[str, Any]) -> None:
        """Change some faults; ValueError for an unknown one."""
        self.faults = self.faults.changed(changes)
        if "seed" in changes:
            self.random = Random(self.faults.seed)
        if "throttle_first" in changes:
            self._throttle_left = self.faults.throttle_first
        if "refuse_sockets" in changes:
            self._sockets_refused = 0

    def new_place(self, host: Host, *, elevated: bool) -> Place:
        """Return where the processes of one more session or command run."""
        return Place(host.machine, f"{self.mark}.{next(self._numbers)}.", elevated)

    def record(self, action: str, parameters: Mapping[str, Any]) -> None:
        """Keep a call as an account's history would, and apply the faults of the API itself."""
        self.calls.append({"action": action, "parameters": dict(parameters)})
        if self._throttle_left > 0:
            self._throttle_left -= 1
            raise ApiError("ThrottlingException", "Rate exceeded")
        with_document = f"{action}:{parameters.get('DocumentName', SHELL_DOCUMENT)}"
        if {action, with_document} & set(self.faults.denied):
            raise ApiError(
                "AccessDeniedException",
                f"User: arn:aws:sts::{ACCOUNT_ID}:assumed-role/role/user is not authorized to "
                f"perform: ssm:{action} because no identity-based policy allows the action",
            )

    def refuses_socket(self) -> bool:
        """Say whether this client socket is one to be refused; counts it."""
        refuses = self._sockets_refused < self.faults.refuse_sockets
        self._sockets_refused += refuses
        return refuses

    def is_connected(self, host: Host) -> bool:
        """Say whether the agent of a host answers."""
        instance = host.instance
        return (
            instance.state == "running"
            and instance.ping == "Online"
            and not self.faults.cuts_off(instance.instance_id)
            and asyncio.get_running_loop().time() >= host.offline_until
        )

    def connected_host(self, instance_id: str) -> Host:
        """Return the host, or raise what StartSession answers when its agent is not connected."""
        host = self.hosts.get(instance_id)
        if host is None or not self.is_connected(host):
            raise ApiError("TargetNotConnected", f"{instance_id} is not connected.")
        return host

    def restart_agent(self, host: Host, seconds: float) -> None:
        """Make the agent unreachable for a while; running sessions live on (recorded)."""
        host.offline_until = asyncio.get_running_loop().time() + seconds

    async def reboot(self, host: Host, seconds: float) -> None:
        """End all that runs on a host, without a word to the clients, and keep it away a while."""
        self.restart_agent(host, seconds)
        sessions = [each for each in self.sessions.values() if each.host is host]
        if not self.faults.reboot_noticed:
            await asyncio.gather(*(each.lose_agent() for each in sessions))
            sessions = []
        await self._end(sessions, [host])

    async def reset(self) -> None:
        """Be as at the start: end what runs, forget what was, take back every change."""
        await self._end_all()
        self.sessions.clear()
        self.invocations.clear()
        self.calls.clear()
        for host in self.hosts.values():
            host.instance, host.offline_until = host.at_first, 0.0
        self.change_faults(self._first_faults.to_json())

    async def close(self) -> None:
        """End every session and command; leave no process behind."""
        await self._end_all()
        for host in self.hosts.values():
            host.machine.close()

    async def _end_all(self) -> None:
        if self.sessions or self.invocations:
            await self._end(list(self.sessions.values()), list(self.hosts.values()))
        await asyncio.gather(*(each.die() for each in self.invocations.values()))

    async def _end(self, sessions: "Sequence[Session]", hosts: Sequence[Host]) -> None:
        """Kill all that runs on hosts while the sessions still hold it together."""
        for session in sessions:
            session.has_ended = True  # so that no client hears of it
        await asyncio.gather(*(reap(host.machine, self.mark) for host in hosts))
        await asyncio.gather(*(session.die() for session in sessions))
