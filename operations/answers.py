"""What a host has answered in this run, while nothing has been done to it.

pyinfra goes through each operation twice, to foretell what it will do and to do it. As long as no
operation has run a command, both want the same answers, so a host far away gives them once.
"""

import time
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from pyinfra.api import FactBase, State
from pyinfra.api.host import Host
from pyinfra.context import ctx_host, ctx_state

T = TypeVar("T")

# Seconds. Others may change a host too, while pyinfra waits at its prompt or for other hosts.
LONGEST_AGE = 60.0

_Question = tuple[str | None, type[FactBase[Any]], str]  # operation, fact, arguments
_foretold: WeakKeyDictionary[Host, dict[_Question, tuple[float, Any]]] = WeakKeyDictionary()


def ask(fact: type[FactBase[T]], **arguments: object) -> T:
    """Return what the host says, or said a moment ago when this operation was foretold."""
    host: Host = ctx_host.get()
    state: State = ctx_state.get()
    answers = _foretold.setdefault(host, {})
    question = (host.current_op_hash, fact, repr(arguments))
    if not state.is_executing:
        answer = host.get_fact(fact, **arguments)
        answers[question] = time.monotonic(), answer
        return answer
    # Once: an operation that asks again, or is tried again, has done something in between.
    at, told = answers.pop(question, (-LONGEST_AGE, None))
    if time.monotonic() - at < LONGEST_AGE and not _was_anything_done(state, host):
        return cast(T, told)
    return host.get_fact(fact, **arguments)


def _was_anything_done(state: State, host: Host) -> bool:
    return any(operation.operation_meta.executed for operation in state.ops[host].values())
