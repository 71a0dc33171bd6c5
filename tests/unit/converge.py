"""Run one operation through the real pyinfra engine against this machine."""

from typing import Any

import click
from pyinfra.api import Config, Inventory, State
from pyinfra.api.connect import connect_all
from pyinfra.api.operation import OperationMeta, add_op
from pyinfra.api.operations import run_ops
from pyinfra.api.output import set_echo
from pyinfra.context import ctx_state

set_echo(click.echo)  # as the command line does: without it live output goes nowhere


def _prepared(operation: Any, arguments: dict[str, Any]) -> tuple[State, OperationMeta]:
    state = State(Inventory((["@local"], {})), Config())
    with ctx_state.use(state):
        connect_all(state)
        (meta,) = add_op(state, operation, name=operation.__name__, **arguments).values()
    return state, meta


def plan_of(operation: Any, **arguments: Any) -> bool:
    """Return whether a dry run says that the operation would change something."""
    _, meta = _prepared(operation, arguments)
    return meta.will_change


def converge(operation: Any, **arguments: Any) -> bool:
    """Apply the operation; return whether it changed anything."""
    state, meta = _prepared(operation, arguments)
    with ctx_state.use(state):
        run_ops(state)
    return meta.did_change()
