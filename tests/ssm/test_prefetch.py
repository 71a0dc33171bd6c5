import os
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm._errors import SessionEnded
from pyinfra_ssm._prefetch import Foresight, Memory, default_folder
from pyinfra_ssm._transport import Ending, Request, Stream

UPTIME, NAME, NEW = (Request(command) for command in ("uptime", "uname", "new"))


class Answers:
    """Commands that were begun; `broken` ones have lost their session."""

    def __init__(self, broken: Any = ()) -> None:
        self.begun: list[Request] = []
        self.dropped: list[Request] = []
        self.broken = set(broken)

    def begin(self, request: Any) -> Any:
        self.begun.append(request)
        return Answer(self, request)


class Answer:
    def __init__(self, answers: Any, request: Any) -> None:
        self._answers, self._request = answers, request

    def finish(self, on_output: Any) -> Any:
        if self._request in self._answers.broken:
            raise SessionEnded("gone")
        on_output(Stream.STDOUT, self._request.command.encode())
        return Ending(0)

    def drop(self) -> None:
        self._answers.dropped.append(self._request)


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    return Memory(tmp_path / "cache", "@ssm/i-1", ["deploy.py"])


def foresee(memory: Any, *requests: Any, broken: Any = ()) -> Any:
    memory.save(requests)
    answers, foresight = Answers(broken), Foresight(memory)
    foresight.begin(answers.begin)
    return foresight, answers


def ask(foresight: Any, request: Any) -> Any:
    output = []
    ending = foresight.answer(request, lambda _, data: output.append(data))
    return ending and b"".join(output)


def test_all_that_is_remembered_is_begun_at_once_and_answered_as_asked(memory: Any) -> None:
    foresight, answers = foresee(memory, UPTIME, NAME)
    assert answers.begun == [UPTIME, NAME]
    assert ask(foresight, NAME) == b"uname"
    assert ask(foresight, UPTIME) == b"uptime"
    assert ask(foresight, NAME) == b"uname"  # pyinfra asks again what it asked before
    assert foresight.answered == 3


def test_the_first_command_that_was_not_foreseen_ends_it(memory: Any) -> None:
    foresight, answers = foresee(memory, UPTIME, NAME)
    assert ask(foresight, NEW) is None
    assert ask(foresight, UPTIME) is None
    assert answers.dropped == [UPTIME, NAME]


def test_an_end_is_for_good(memory: Any) -> None:
    foresight, _ = foresee(memory, UPTIME)
    foresight.end()
    assert ask(foresight, UPTIME) is None


def test_a_lost_session_answers_nothing(memory: Any) -> None:
    foresight, _ = foresee(memory, UPTIME, NAME, broken=[UPTIME])
    assert ask(foresight, UPTIME) is None
    assert ask(foresight, NAME) is None


def test_what_was_asked_is_remembered_in_order_and_once(memory: Any) -> None:
    foresight, _ = foresee(memory, UPTIME)
    for request in (NEW, NAME, NEW):
        ask(foresight, request)
    foresight.end()
    assert memory.load() == [NEW, NAME]


def test_nothing_asked_leaves_the_memory_as_it_was(memory: Any) -> None:
    foresight, _ = foresee(memory, UPTIME)
    foresight.end()
    assert memory.load() == [UPTIME]


@pytest.mark.parametrize(
    "request_",
    [Request("x", has_secret=True), Request("x", stdin=b"token")],
    ids=["secret", "stdin"],
)
def test_what_may_be_secret_is_neither_remembered_nor_foreseen(memory: Any, request_: Any) -> None:
    foresight, _ = foresee(memory, UPTIME)
    assert ask(foresight, request_) is None
    foresight.end()
    assert memory.load() == [UPTIME]


def test_deploys_and_hosts_have_memories_of_their_own(tmp_path: Path) -> None:
    memories = [
        Memory(tmp_path, host, deploy)
        for host in ("@ssm/i-1", "@ssm/i-2")
        for deploy in (["deploy.py"], ["bench.py"])
    ]
    for number, memory in enumerate(memories):
        memory.save([Request(str(number))])
    assert [memory.load()[0].command for memory in memories] == ["0", "1", "2", "3"]


DAMAGED = {
    "not JSON": b"{",
    "another version": b'{"version": 0, "commands": []}',
    "not commands": b'{"version": 1, "commands": [{"command": 7}]}',
    "a list": b"[]",
    "not text": b"\xff\xfe",
    "lists in lists": b"[" * 100_000,
    "larger than any": b" " * (1 << 20) + b"{}",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_memory_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    memory = Memory(tmp_path, "@ssm/i-1", [])
    memory.save([UPTIME])
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    assert memory.load() == []


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_memory_that_others_can_write_to_is_an_empty_one(tmp_path: Path, mode: int) -> None:
    memory = Memory(tmp_path, "@ssm/i-1", [])
    memory.save([UPTIME])
    (path,) = tmp_path.iterdir()
    path.chmod(mode)
    assert memory.load() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_memory_of_somebody_else_is_an_empty_one(tmp_path: Path) -> None:
    memory = Memory(tmp_path, "@ssm/i-1", [])
    memory.save([UPTIME])
    (path,) = tmp_path.iterdir()
    os.chown(path, 65534, 65534)
    assert memory.load() == []


PLACES = {
    "as the desktops say": ({"XDG_CACHE_HOME": "/cache", "HOME": "/home/me"}, "/cache"),
    "at home": ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache"),
}


@pytest.mark.parametrize(("environment", "place"), PLACES.values(), ids=PLACES)
def test_the_place_of_memories(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], place: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_folder() == Path(place) / "pyinfra-ssm"


def test_who_has_no_home_has_no_place_for_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_001)  # of no account of this machine
    assert default_folder() is None


def test_a_memory_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    Memory(Path(tmp_path / "file" / "cache"), "@ssm/i-1", []).save([UPTIME])
