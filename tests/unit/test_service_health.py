"""The script that waits on the host: its judgement of text, and how each outcome ends."""

import json
import os
import subprocess
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.health import service_health
from files.health.service_health import EXIT_DIED, EXIT_LATE, EXIT_NONSENSE, nonsense
from tests import loopback

SANE = {
    "one word": "Paris.",
    "a sentence": "Site reliability engineering is the practice of keeping systems up.",
    "cut short": "The capital of France is",
    "a list": "- one\n- two\n- three\n- four\n- five",
    "a table": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "another script": "東京は日本の首都です。",
    "a rhyme": "Row, row, row your boat, gently down the stream.",
}
NONSENSE = {
    "empty": ("", "empty"),
    "blank": (" \n ", "empty"),
    "the endpoint that is broken on a real host": (": ok: ok: ok: ok: ok", "repeats ': ok'"),
    "one character": ("!!!!!!!!!!!!", "repeats '!'"),
    "one word": ("the the the the the the the", "repeats"),
    "undecodable": ("\ufffd\ufffd\ufffd a \ufffd", "not text"),
    "few words shuffled": ("a b a a b b a b a b b a a b a b", "2 different words in 16"),
}


@pytest.mark.parametrize("text", SANE.values(), ids=SANE)
def test_language_is_sane(text):
    assert nonsense(text) == ""


@pytest.mark.parametrize(("text", "said"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_named(text, said):
    assert said in nonsense(text)


@given(st.text(min_size=1, max_size=12).filter(str.strip), st.integers(12, 40))
def test_whatever_is_repeated_often_is_nonsense(unit, times):
    assert nonsense(unit * times)


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
    return service_health.wait(chosen, clock.sleep, clock)


OLD = {"ActiveState": "active", "SubState": "running", "InvocationID": "old", "NRestarts": "3"}
NEW = {"ActiveState": "active", "SubState": "running", "InvocationID": "new", "NRestarts": "0"}
CHECKING = {**NEW, "ActiveState": "activating", "SubState": "start-pre"}


def test_the_old_process_is_not_taken_for_the_new_one(states, capsys):
    calls = states(OLD, OLD, {**OLD, "ActiveState": "deactivating"}, CHECKING, NEW)
    with serving(chat("It keeps systems up.")) as server:
        assert wait(options(server.server_port, restart=True)) == 0
        assert len(server.requests) == 1
    assert "restart --no-block vllm.service" in calls.read_text()
    assert "answered 'It keeps systems up.'" in capsys.readouterr().out


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
    key.write_text("VLLM_API_KEY=abc123\n# generation 4\n")
    with serving(chat("Fine.")) as server:
        assert wait(options(server.server_port, api_key_file=str(key))) == 0
        headers, body = server.requests[0]
    assert headers["Authorization"] == "Bearer abc123"
    assert body["messages"] == [{"role": "user", "content": "What is SRE?"}]
    assert service_health.key_generation(str(key)) == 4


def test_no_variable_is_told_but_those_asked_for():
    environment = {"VLLM_API_KEY": "abc123", "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen(
        ["/bin/cat", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as cat:
        assert cat.stdin is not None
        assert cat.stdout is not None
        cat.stdin.write(b"it runs\n")
        cat.stdin.flush()
        assert cat.stdout.readline() == b"it runs\n"  # before that, /proc still shows nothing
        shown = service_health.process(cat.pid, ["HF_HUB_OFFLINE"])
    assert shown["argv"] == ["/bin/cat", "-"]
    assert shown["environment"] == {"HF_HUB_OFFLINE": "1"}


def test_a_version_changes_whenever_a_file_is_replaced(tmp_path):
    path = tmp_path / "stamp"
    assert service_health.version(str(path)) == ""
    path.write_text("same")
    first = service_health.version(str(path))
    (tmp_path / "new").write_text("same")
    (tmp_path / "new").rename(path)
    assert service_health.version(str(path)) not in ("", first)


def test_drop_ins_of_this_unit_alone_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(service_health, "UNIT_DIRECTORIES", (f"{tmp_path}/etc", f"{tmp_path}/run"))
    for path in (
        "etc/vllm.service.d",
        "etc/service.d",
        "run/vllm.service.d",
        "run/other.service.d",
    ):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "x.conf").write_text(path)
    (tmp_path / "etc/vllm.service.d/notes").write_text("no drop-in")
    assert service_health.drop_ins("vllm.service") == {
        f"{tmp_path}/etc/vllm.service.d/x.conf": "etc/vllm.service.d",
        f"{tmp_path}/run/vllm.service.d/x.conf": "run/vllm.service.d",
    }
