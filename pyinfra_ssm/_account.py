"""The AWS API of one account: Systems Manager, EC2 and KMS, with patience and readable errors."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from pyinfra_ssm._encryption import DATA_KEY_BYTES
from pyinfra_ssm._errors import ServiceError
from pyinfra_ssm._remedies import code_of, explain
from pyinfra_ssm._stream_signature import signature

# StartSession for 50 hosts is throttled for some seconds (botocore #993); no limit is published.
_MOST_ATTEMPTS = 12
_FIRST_DELAY = 0.5  # seconds; doubled each time, and a random part of it is taken
_LONGEST_DELAY = 8.0

_THROTTLED = {
    "ThrottlingException",
    "Throttling",
    "ThrottledException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "RequestThrottled",
}
_TRANSIENT = {
    "InternalServerError",
    "InternalError",
    "ServiceUnavailable",
    "ConnectionClosedError",
}
# Each takes half a minute: one more try, and whoever waits is told.
_TIMED_OUT = {"ReadTimeoutError", "ConnectTimeoutError"}
_MOST_TIMEOUTS = 2


@dataclass(frozen=True, slots=True)
class Opening:
    """A session that waits for its client."""

    session_id: str
    token: str
    url: str


@dataclass(frozen=True)
class Waiting:
    """How to spend time; real in a session, immediate in a test."""

    sleep: Callable[[float], None]
    chance: Callable[[], float]  # from 0 to 1


class Account:
    """The services behind one profile and region. Its clients are shared by all hosts there."""

    def __init__(
        self,
        profile: str | None,
        region: str | None,
        waiting: Waiting,
        lock: AbstractContextManager[Any],
    ) -> None:
        # Of input frames, in bytes, once a host has found out what the service passes; else 0.
        self.payload_size = 0
        self._profile, self._region = profile, region
        self._waiting, self._lock = waiting, lock
        self._clients: dict[str, Any] = {}
        self._session: Any = None

    def start_session(
        self, target: str, document: str, parameters: Mapping[str, list[str]]
    ) -> Opening:
        answer = self.call(
            "ssm",
            "start_session",
            Target=target,
            DocumentName=document,
            Parameters=parameters,
            Reason="pyinfra",
        )
        return Opening(answer["SessionId"], answer["TokenValue"], answer["StreamUrl"])

    def resume_session(self, opening: Opening) -> Opening | None:
        """Return the session with a new token; None if it is over.

        Its address may be left out: the reference plug-in goes on with the first one.
        https://github.com/aws/session-manager-plugin/blob/mainline/src/sessionmanagerplugin/session/sessionhandler.go
        """
        try:
            answer = self.call("ssm", "resume_session", SessionId=opening.session_id)
        except ServiceError as error:
            if error.code == "DoesNotExistException":
                return None
            raise
        if not answer.get("TokenValue"):
            return None  # how the reference plug-in learns it
        url = answer.get("StreamUrl") or opening.url
        return replace(opening, token=answer["TokenValue"], url=url)

    def terminate_session(self, session_id: str) -> None:
        self.call("ssm", "terminate_session", SessionId=session_id)

    def generate_data_key(self, key_id: str, context: Mapping[str, str]) -> tuple[bytes, bytes]:
        """Return a session's key in the clear, and as KMS encrypted it."""
        answer = self.call(
            "kms",
            "generate_data_key",
            KeyId=key_id,
            NumberOfBytes=DATA_KEY_BYTES,
            EncryptionContext=context,
        )
        return answer["Plaintext"], answer["CiphertextBlob"]

    def sign_stream(self, url: str) -> dict[str, str]:
        """Return headers that sign the opening of a stream."""
        region = self._client("ssm").meta.region_name
        return signature(url, self._session.get_credentials(), region)

    def pages(self, service: str, action: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Yield every page of a listing."""
        token: dict[str, Any] = {}
        while True:
            page = self.call(service, action, **parameters, **token)
            yield page
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def call(
        self, service: str, action: str, repeatable: bool = True, **parameters: Any
    ) -> dict[str, Any]:
        """Make one API call; wait and repeat when throttled, or (if repeatable) on a hiccup."""
        from botocore.exceptions import BotoCoreError, ClientError  # slow to import: see _client

        delay, timeouts = _FIRST_DELAY, 0
        for attempt in range(1, _MOST_ATTEMPTS + 1):
            try:
                answer: dict[str, Any] = getattr(self._client(service), action)(**parameters)
                return answer
            except (BotoCoreError, ClientError, ValueError) as error:
                code = code_of(error)
                timeouts += code in _TIMED_OUT
                passes = code in _TRANSIENT or (code in _TIMED_OUT and timeouts < _MOST_TIMEOUTS)
                again = code in _THROTTLED or (repeatable and passes)
                if not again or attempt == _MOST_ATTEMPTS:
                    raise ServiceError(code, explain(service, action, error)) from error
            self._waiting.sleep(delay * self._waiting.chance())
            delay = min(delay * 2, _LONGEST_DELAY)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _client(self, service: str) -> Any:
        """Return the client, made on first use: before that gevent may not have patched yet."""
        with self._lock:
            if service not in self._clients:
                import boto3  # half a second: not worth it in a run without hosts over SSM
                from botocore.config import Config

                if self._session is None:
                    self._session = boto3.Session(
                        profile_name=self._profile, region_name=self._region
                    )
                config = Config(
                    retries={"total_max_attempts": 1},  # call() repeats, with jitter
                    max_pool_connections=64,
                    connect_timeout=10,
                    read_timeout=30,
                    user_agent_extra="pyinfra-ssm",
                )
                self._clients[service] = self._session.client(service, config=config)
                # What botocore has read of a service stays for good. Left to the collector, it is
                # walked through in the run and three times at its exit: 0.6 s of it (measured).
                gc.freeze()
            return self._clients[service]
