"""What is asked of a host in both phases of a run, through the real engine on this machine."""

from pathlib import Path

import pytest
from pyinfra.api import Config, FactBase, Inventory, QuoteString, State, StringCommand, operation
from pyinfra.api.connect import connect_all
from pyinfra.api.operation import add_op
from pyinfra.api.operations import run_ops
from pyinfra.context import ctx_state
from pyinfra.operations import server

from operations import answers
from operations.answers import ask


class Asked(FactBase[int]):
    """How often this was asked: unlike a real fact it leaves a trace, to be counted by."""

    def command(self, log: str) -> StringCommand:
        path = QuoteString(log)
        return StringCommand("echo asked >>", path, "; wc -l <", path)

    def process(self, output: list[str]) -> int:
        return int(output[0])


@operation()
def converged(log: str, times: int = 1, changes: bool = False):
    """Ask, and do something only where `changes` says so."""
    for _ in range(times):
        ask(Asked, log=log)
    if changes:
        yield "true"


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def asked_in_run(log: str, *operations) -> tuple[int, int]:
    """Return how often a run asked until the plan was there, and how often after that."""
    state = State(Inventory((["@local"], {})), Config())
    with ctx_state.use(state):
        connect_all(state)
        for each, arguments in operations:
            add_op(state, each, **arguments)
        foretold = len(Path(log).read_text().splitlines())
        run_ops(state)
    return foretold, len(Path(log).read_text().splitlines()) - foretold


def test_a_run_that_changes_nothing_asks_once(log):
    assert asked_in_run(log, *2 * [(converged, {"log": log})]) == (2, 0)


BEFORE = {
    "one of ours": (converged, {"log": "/dev/null", "times": 0, "changes": True}),
    "one of pyinfra's": (server.shell, {"commands": "true"}),
    "one that failed": (server.shell, {"commands": "false", "_ignore_errors": True}),
}


@pytest.mark.parametrize("earlier", BEFORE.values(), ids=BEFORE)
def test_after_an_operation_that_did_something_it_is_asked_again(log, earlier):
    assert asked_in_run(log, earlier, (converged, {"log": log})) == (1, 1)


def test_an_operation_that_asks_twice_has_done_something_in_between(log):
    assert asked_in_run(log, (converged, {"log": log, "times": 2})) == (2, 1)


def test_an_old_answer_is_not_used(log, monkeypatch):
    monkeypatch.setattr(answers, "LONGEST_AGE", 0.0)
    assert asked_in_run(log, (converged, {"log": log})) == (1, 1)


def test_an_answer_holds_for_its_operation_alone(log, tmp_path):
    other = str(tmp_path / "other")
    run = ((converged, {"log": log}), (converged, {"log": other}), (converged, {"log": log}))
    assert asked_in_run(log, *run) == (2, 0)
    assert Path(other).read_text() == "asked\n"
