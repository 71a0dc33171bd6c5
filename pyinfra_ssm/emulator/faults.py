"""What can go wrong on request, and how slow the line is: one frozen value, replaced as a whole."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self


@dataclass(frozen=True, kw_only=True)
class Faults:
    """The behaviour of line, service and agent. The defaults are a sound agent on a fast line."""

    # One-way delay between client and service, for API calls and websocket messages alike.
    delay_ms: float = 0.0
    # Probabilities per stream or acknowledgement message, in both directions.
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    # How much longer than the others a reordered message is under way.
    reordering_ms: float = 20.0
    # Of the generator that decides which messages are hit.
    seed: int = 0
    # Client sockets opened from now on are closed at this age, as the service does about hourly.
    close_every_s: float | None = None
    close_code: int = 1000
    # So many client sockets from now on are refused with 503.
    refuse_sockets: int = 0
    # A client socket whose opening request is not signed for ssmmessages is refused with 403.
    signature_wanted: bool = False
    # A larger websocket message from the client closes its socket with code 1009.
    max_frame_bytes: int | None = None
    # So many API calls from now on get ThrottlingException (EC2: RequestLimitExceeded).
    throttle_first: int = 0
    # API actions that get AccessDeniedException (EC2: UnauthorizedOperation), such as
    # "SendCommand", or with one document only: "StartSession:AWS-StartInteractiveCommand".
    denied: tuple[str, ...] = ()
    # Instance ids whose agent is not connected; "*" for all.
    not_connected: tuple[str, ...] = ()
    # The agent waits this long before it reads a terminal for the first time (recorded: 1.0 s).
    start_delay_s: float = 1.0
    # Until a terminal exists, input is neither handled nor acknowledged. 0 is a local terminal's
    # own time, milliseconds.
    terminal_delay_s: float = 0.0
    # Asks every session for KMS encryption with this key id.
    kms_key: str | None = None
    # What the account wants shown at the start; any text makes every session shake hands.
    customer_message: str = ""
    # Where the agent decrypts data keys; None is the emulator's own KMS, on its endpoint.
    kms_endpoint_url: str | None = None
    # Seconds without input or output, and seconds of life, after which the service ends a session.
    idle_timeout_s: float | None = None
    max_session_s: float | None = None
    # How long the agent takes to admit that nothing listens on the port (recorded: 60 s).
    port_refused_s: float = 60.0
    # How long an instance is away when `reboot` runs on it (this machine only).
    reboot_s: float = 1.0
    # Whether the service knows that the sessions of an instance that reboots are over. If not, they
    # can be resumed, and nobody answers.
    reboot_noticed: bool = True
    # Answers of InvocationDoesNotExist after SendCommand, per invocation.
    invocation_missing: int = 1
    # Whether one InProgress follows the first answer that shows the ending.
    late_in_progress: bool = True
    # Largest page of the Describe calls, and largest text of SendCommand's parameters.
    page_size: int = 50
    max_command_bytes: int = 65_536

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return these faults with some of them changed; ValueError for an unknown name."""
        unknown = changes.keys() - {field.name for field in fields(self)}
        if unknown:
            raise ValueError(f"no such fault: {', '.join(sorted(unknown))}")
        listed: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()
        }
        return replace(self, **listed)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def cuts_off(self, instance_id: str) -> bool:
        return "*" in self.not_connected or instance_id in self.not_connected
