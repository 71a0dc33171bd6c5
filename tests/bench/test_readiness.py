"""Boot times: to health, and from there to an answer; by a clock moved by hand."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from facts.units import FoundUnit
from files.bench.chat import Server
from files.bench.readiness import POLL, Timer, wait_until_ready
from operations.readiness import Stopwatch, plan, unit_file
from tests.bench.fake_server import FakeServer, Refusal, obedient, unused_url


@dataclass
class Clock:
    """Time passes only while somebody waits; `events` happen once their second has come."""

    seconds: float = 100.0
    events: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def now(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        while self.events and self.events[0][0] <= self.seconds:
            self.events.pop(0)[1]()

    def timer(self) -> Timer:
        return Timer(self.now, self.wait)


def test_health_and_first_answer_are_timed_from_the_start_of_the_unit(server: FakeServer) -> None:
    del server.pages["/health"]
    server.answer = lambda body: Refusal(503, {"detail": "loading"})
    clock = Clock()
    clock.events = [
        (124.0, lambda: server.pages.update({"/health": ""})),
        (146.9, lambda: setattr(server, "answer", obedient)),
    ]
    report = wait_until_ready(server.client(), "/health", 600, 99.0, clock.timer())
    assert "complaint" not in report
    assert abs(report["healthy_s"] - 25.0) <= 2 * POLL
    assert abs(report["first_chat_s"] - 47.9) <= 2 * POLL
    assert report["first_text"]


def test_a_server_that_was_up_already_has_no_boot_time(server: FakeServer) -> None:
    report = wait_until_ready(server.client(), "/health", 600, 10.0, Clock().timer())
    assert (report["healthy_s"], report["first_chat_s"]) == (None, None)
    assert "complaint" not in report


def test_healthy_and_dead_is_a_complaint(server: FakeServer) -> None:
    server.answer = lambda body: Refusal(500, {"error": "EngineDeadError"})
    report = wait_until_ready(server.client(), "/health", 600, None, Clock().timer())
    assert "healthy, but the first chat failed: HTTP 500" in report["complaint"]


def test_a_server_that_never_comes_is_given_up() -> None:
    clock = Clock()
    report = wait_until_ready(Server(unused_url(), "tiny"), "/health", 60, None, clock.timer())
    assert report["complaint"] == "/health was not 200 within 60 s"
    assert 160 <= clock.seconds < 161


def test_a_server_that_stays_busy_is_given_up_too(server: FakeServer) -> None:
    server.answer = lambda body: Refusal(429)
    clock = Clock()
    report = wait_until_ready(server.client(), "/health", 60, None, clock.timer())
    assert "HTTP 429" in report["complaint"]
    assert clock.seconds < 161


WATCH = Stopwatch(
    server_unit="vllm.service",
    url="http://127.0.0.1:8000",
    model="a model",
    programs="/usr/local/lib/vllm-g5g",
    record="/var/lib/vllm-g5g/readiness.json",
    wait=2700,
    api_key_file="/etc/vllm-g5g/api-key.env",
)


def test_the_stopwatch_starts_with_the_server_and_hands_the_key_by_file() -> None:
    text = unit_file(WATCH).content
    assert "WantedBy=vllm.service" in text
    assert '--model "a model"' in text
    assert "--api-key-file /etc/vllm-g5g/api-key.env" in text


REENABLE = "systemctl reenable vllm-readiness.service"
WANTING = {"the server's": ("vllm.service", []), "another's": ("transformers.service", [REENABLE])}


@pytest.mark.parametrize(("server", "commands"), WANTING.values(), ids=WANTING)
def test_a_stopwatch_of_another_server_is_enabled_for_this_one(
    server: str, commands: list[str]
) -> None:
    state = {"LoadState": "loaded", "UnitFileState": "enabled", "WantedBy": server}
    sha256 = hashlib.sha256(unit_file(WATCH).content.encode()).hexdigest()
    steps = plan(FoundUnit(state=state, sha256=sha256), WATCH)
    assert [str(step.command) for step in steps] == commands
