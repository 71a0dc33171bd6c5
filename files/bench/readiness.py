"""How long a server takes to be healthy, and from there to a first completed answer.

A 200 from /health is not yet an answer: the first chat came up to 22.9 s later on one runtime, and
a build of vLLM was seen that is healthy for ever and dies of its first request. Run it as the
service starts (ExecStartPost=) and every boot is on record.
"""

import argparse
import http.client
import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .chat import ChatError, Clock, Server, Trouble, chat_body, complete
from .figures import write_json
from .throughput import add_server_arguments, server_of

SCHEMA = "vllm-g5g/readiness/1"
POLL = 0.1  # seconds; every 5 s would round boots of 24 s by a fifth
MORE_TO_COME = (Trouble.UNREACHABLE, Trouble.BUSY)


@dataclass(frozen=True)
class Timer:
    """The clock and the way to let time pass, so that a boot of minutes tests in no time."""

    now: Clock = time.monotonic
    wait: Callable[[float], None] = time.sleep


def healthy(server: Server, path: str = "/health") -> bool:
    connection = server.connect(timeout=5)
    try:
        connection.request("GET", server.path(path), headers=server.headers())
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def wait_until_ready(
    server: Server, health: str, timeout: float, began: float | None, timer: Timer
) -> dict[str, Any]:
    """Poll until healthy, then chat until one is answered; return both times in seconds.

    `began` is when the service started, by the same clock; without it, and where the server was
    healthy at the first look, the time to health is not known (None).
    """
    looked, first_look = timer.now(), True
    origin = looked if began is None else began
    report: dict[str, Any] = {"schema": SCHEMA, "healthy_s": None, "first_chat_s": None}
    while not healthy(server, health):
        first_look = False
        if timer.now() - looked > timeout:
            return report | {"complaint": f"{health} was not 200 within {timeout:g} s"}
        timer.wait(POLL)
    if not first_look:
        report["healthy_s"] = timer.now() - origin
    return report | _first_chat(server, looked + timeout, origin, first_look, timer)


def _first_chat(
    server: Server, deadline: float, origin: float, was_up: bool, timer: Timer
) -> dict[str, Any]:
    while True:
        try:
            done = complete(server, chat_body(server, "Say hello.", 8), timer.now)
        except ChatError as error:
            if error.trouble in MORE_TO_COME and timer.now() < deadline:
                timer.wait(POLL)
                continue
            return {"complaint": f"healthy, but the first chat failed: {error}"}
        taken = None if was_up else timer.now() - origin
        return {"first_chat_s": taken, "first_text": done.text or done.reasoning}


def started_at(unit: str) -> float | None:
    """Return when systemd started the unit's main process, in seconds of the monotonic clock."""
    show = ["systemctl", "show", "--value", "-p", "ExecMainStartTimestampMonotonic", "--", unit]
    try:
        shown = subprocess.run(show, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return None
    return int(shown) / 1e6 if shown.isdigit() and int(shown) else None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_arguments(parser)
    parser.add_argument("--health", default="/health", help="path that answers 200 when up")
    parser.add_argument("--wait", type=float, default=1800.0, help="seconds until it is hopeless")
    parser.add_argument("--unit", help="systemd unit whose start is the origin of the times")
    parser.add_argument("--record", type=Path, help="file to keep the result in")


def main(options: argparse.Namespace) -> int:
    began = started_at(options.unit) if options.unit else None
    report = wait_until_ready(server_of(options), options.health, options.wait, began, Timer())
    report |= {"unit": options.unit, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    print(json.dumps(report), flush=True)
    if options.record:
        write_json(options.record, report)
    return 1 if report.get("complaint") else 0
