"""The wait on the host for a service to answer, and how each outcome ends."""

import json
import os
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from files.bench import startup
from files.bench.readiness import Timer
from files.bench.startup import EXIT_DIED, EXIT_LATE, EXIT_NONSENSE
from tests import loopback


class Server(ThreadingHTTPServer):
    """Answers chats from a list of (status, body), the last one for ever; keeps the requests."""

    daemon_threads = True
    answers: list[tuple[int, str]]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Chat)
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []


class _Chat(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((dict(self.headers), json.loads(body)))
        answers = self.server.answers
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output clean."""


def serving(*answers: tuple[int, str]) -> AbstractContextManager[Server]:
    server = Server()
    server.answers = list(answers)
    return loopback.serving(server)


def chat(text: str) -> tuple[int, str]:
    return 200, json.dumps({"choices": [{"message": {"content": text}}]})


def options(port: int = 1, **changes: Any) -> Namespace:
    defaults = {
        "unit": "vllm.service",
        "url": f"http://127.0.0.1:{port}",
        "model": "tiny",
        "api_key_file": None,
        "question": "What is SRE?",
        "max_tokens": 16,
        "deadline": 60,
        "restart": False,
    }
    return Namespace(**{**defaults, **changes})


@pytest.fixture
def states(tmp_path, monkeypatch) -> Callable[..., Path]:
    """Put a systemctl on PATH that shows the given states in turn, the last one for ever."""

    def show(*shown: dict[str, str]) -> Path:
        for number, state in enumerate(shown):
            text = "".join(f"{name}={value}\n" for name, value in state.items())
            (tmp_path / f"state-{number:02}").write_text(text)
        stub = tmp_path / "systemctl"
        stub.write_text(
            f'#!/bin/sh\ncd {tmp_path}; echo "$*" >>calls\n[ "$1" = show ] || exit 0\n'
            'set -- state-*; cat "$1"; [ $# -eq 1 ] || rm "$1"\n'
        )
        stub.chmod(0o755)
        (tmp_path / "journalctl").write_text(
            '#!/bin/sh\necho "(Worker pid=8) INFO 11-30 12:57:15 [cpu.py:178] Loading weights"\n'
        )
        (tmp_path / "journalctl").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return Path(tmp_path, "calls")

    return show


class Clock:
    """Seconds that pass only when somebody sleeps."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def wait(chosen: Namespace) -> int:
    clock = Clock()
    return startup.wait(chosen, Timer(clock, clock.sleep))


OLD = {"ActiveState": "active", "SubState": "running", "InvocationID": "old", "NRestarts": "3"}
NEW = {"ActiveState": "active", "SubState": "running", "InvocationID": "new", "NRestarts": "0"}
CHECKING = {**NEW, "ActiveState": "activating", "SubState": "start-pre", "Job": "229"}
ASKED = {**OLD, "Job": "229"}


def test_the_old_process_is_not_taken_for_the_new_one(states, capsys):
    calls = states(OLD, ASKED, {**ASKED, "ActiveState": "deactivating"}, CHECKING, NEW)
    with serving(chat("It keeps systems up.")) as server:
        assert wait(options(server.server_port, restart=True)) == 0
        assert len(server.requests) == 1
    assert "restart --no-block vllm.service" in calls.read_text()
    assert "answered 'It keeps systems up.'" in capsys.readouterr().out


def test_a_start_of_systemds_own_is_not_taken_for_the_one_that_was_asked_for(states):
    """The old process died just before, and systemd was at its next start already."""
    its_own = {**CHECKING, "InvocationID": "its own", "NRestarts": "1"}
    states({**OLD, "NRestarts": "0"}, its_own, CHECKING, NEW)
    with serving(chat("Fine.")) as server:
        assert wait(options(server.server_port, restart=True)) == 0


def test_progress_is_shown_and_a_loading_server_is_asked_again(states, capsys):
    states(NEW)
    loading = [(503, "")] * 12
    with serving(*loading, chat("Fine.")) as server:
        assert wait(options(server.server_port)) == 0
    shown = capsys.readouterr().out
    assert "5 s of 60: active (running) Loading weights" in shown
    assert "10 s of 60" in shown


DEATHS = {
    "waits for its next start": {**NEW, "ActiveState": "activating", "SubState": "auto-restart"},
    "failed": {**NEW, "ActiveState": "failed", "SubState": "failed"},
    "stopped by somebody": {**NEW, "ActiveState": "inactive", "SubState": "dead"},
    "started again already": {**NEW, "InvocationID": "newer", "NRestarts": "1"},
}


@pytest.mark.parametrize("state", DEATHS.values(), ids=DEATHS)
def test_a_death_ends_the_wait_at_once_and_names_the_start(states, capsys, state):
    died = {**state, "Result": "exit-code", "ExecMainStatus": "1"}
    states(OLD, CHECKING, died)
    assert wait(options(restart=True)) == EXIT_DIED
    shown = capsys.readouterr().out
    assert "vllm.service died while starting (exit-code, exit status 1, invocation new" in shown


def test_restarts_of_former_days_are_no_death(states):
    states(OLD)
    with serving(chat("Fine.")) as server:
        assert wait(options(server.server_port)) == 0


def test_a_server_that_never_listens_is_late(states, capsys):
    states(NEW)
    assert wait(options(port=1)) == EXIT_LATE
    assert "has not answered a chat completion within 60 s" in capsys.readouterr().out


BROKEN = {
    "repeated tokens": (chat(": ok: ok: ok: ok: ok"), "degenerate text"),
    "healthy but dead": ((500, "EngineDeadError"), "answered a chat with 500: EngineDeadError"),
    "another key": ((401, "Unauthorized"), "answered a chat with 401"),
    "another model": ((404, "The model `tiny` does not exist."), "answered a chat with 404"),
}


@pytest.mark.parametrize(("answer", "said"), BROKEN.values(), ids=BROKEN)
def test_an_answer_that_no_patience_cures_ends_the_wait(states, capsys, answer, said):
    states(NEW)
    with serving(answer) as server:
        assert wait(options(server.server_port)) == EXIT_NONSENSE
    assert said in capsys.readouterr().out


def test_the_key_goes_by_file_into_the_header(states, tmp_path):
    states(NEW)
    key = tmp_path / "key.env"
    key.write_text("VLLM_API_KEY=abc123\n")
    with serving(chat("Fine.")) as server:
        assert wait(options(server.server_port, api_key_file=str(key))) == 0
        headers, body = server.requests[0]
    assert headers["Authorization"] == "Bearer abc123"
    assert body["messages"] == [{"role": "user", "content": "What is SRE?"}]
