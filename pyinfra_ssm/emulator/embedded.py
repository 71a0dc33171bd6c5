"""The emulator for tests and benchmarks: a process of its own, held by a context manager.

A process, not a thread: pyinfra patches the threads and sockets of its own process with gevent.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

from pyinfra_ssm.emulator.faults import Faults
from pyinfra_ssm.emulator.instances import DEFAULT_ID, Instance

_STOP_LIMIT = 20  # seconds, for the emulator to end what runs


class Emulator:
    """`with Emulator(Faults(delay_ms=20)) as emulator:`, by default with this machine as host.

    + faults: how line, service and agent behave at first
    + instances: the fleet; one instance, this machine, if none are given
    + documents: further session documents, by name, as JSON of schema 1.0
    + namespace: give this machine's instances processes, mounts and a host name of their own
    """

    def __init__(
        self,
        faults: Faults | None = None,
        instances: Sequence[Instance] = (),
        documents: Mapping[str, Mapping[str, Any]] | None = None,
        namespace: bool = False,
    ) -> None:
        if namespace and any(each.container for each in instances):
            raise ValueError("a container has namespaces already: namespace is for this machine")
        self._options = ["--namespace"] if namespace else []
        self._config = {
            "faults": (faults or Faults()).to_json(),
            "instances": [asdict(each) for each in instances],
            "documents": dict(documents or {}),
        }
        self._process: subprocess.Popen[str] | None = None
        self.endpoint_url = ""

    def __enter__(self) -> Self:
        module = [sys.executable, "-m", "pyinfra_ssm.emulator", "--config-from-stdin"]
        self._process = subprocess.Popen(
            [*module, *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": _import_path()},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(self._config) + "\n")
        self._process.stdin.flush()
        ready = self._process.stdout.readline()
        if not ready:
            raise RuntimeError(f"the emulator ended with {self._process.wait()}; see its stderr")
        self.endpoint_url = json.loads(ready)["endpoint_url"]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(_STOP_LIMIT)
        finally:
            self.process.kill()  # does nothing to one that has ended
            self.process.stdout.close()

    @property
    def process(self) -> "subprocess.Popen[str]":
        """The emulator's own process, while the context lasts and after."""
        assert self._process is not None, "the emulator is not started: use it with `with`"
        return self._process

    @property
    def environment(self) -> dict[str, str]:
        """What boto3 needs to talk to this emulator and to nothing else."""
        services = ("SSM", "EC2", "KMS")
        return {f"AWS_ENDPOINT_URL_{service}": self.endpoint_url for service in services} | {
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every API call so far: `action` and `parameters`, as an account's history has them."""
        calls: list[dict[str, Any]] = self._ask("GET", "/calls")
        return calls

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """Every session so far: `session_id`, `instance_id`, `has_ended`."""
        sessions: list[dict[str, Any]] = self._ask("GET", "/sessions")
        return sessions

    @property
    def faults(self) -> dict[str, Any]:
        """The faults as they are now, as JSON."""
        faults: dict[str, Any] = self._ask("GET", "/faults")
        return faults

    def reset(self, **changes: Any) -> None:
        """Be as at the start, but for these faults: for the next test, sooner than a new start."""
        self._ask("POST", "/reset", {})
        self.set_faults(**changes)

    def set_faults(self, **changes: Any) -> None:
        """Change some faults; the others stay."""
        self._ask("PATCH", "/faults", changes)

    def set_instance(self, instance_id: str, **changes: Any) -> None:
        """Change members of an instance, for example `state="stopped"`."""
        self._ask("PATCH", f"/instances/{instance_id}", changes)

    def cut_sockets(self) -> None:
        """Close every client socket now; the sessions live on."""
        self._ask("POST", "/cut", {})

    def restart_agent(self, instance_id: str = DEFAULT_ID, seconds: float = 8.0) -> None:
        """Refuse new sessions and commands for a while; running sessions live on."""
        self._ask("POST", f"/agent-restart/{instance_id}", {"seconds": seconds})

    def reboot(self, instance_id: str = DEFAULT_ID, seconds: float = 1.0) -> None:
        """End all sessions of an instance without a word, and keep it away for a while."""
        self._ask("POST", f"/reboot/{instance_id}", {"seconds": seconds})

    def _ask(self, method: str, path: str, members: Mapping[str, Any] | None = None) -> Any:
        body = None if members is None else json.dumps(members).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(self.endpoint_url + path, body, headers, method=method)
        with urlopen(request) as response:
            return json.load(response)


def _import_path() -> str:
    """Return a PYTHONPATH with which the emulator's process finds this very package."""
    here = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
