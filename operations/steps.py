"""What a planner returns, and how an operation carries it out.

A planner is a pure function: what is, and what should be, in; a list of steps out. `carry_out`
turns the list into an operation's generator. It runs in both of pyinfra's phases, so what a dry
run names is computed by the very code that acts.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from gevent import GreenletExit
from pyinfra import context, logger
from pyinfra.api import QuoteString, StringCommand
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.operation import OperationMeta
from pyinfra.api.output import format_text


@dataclass(frozen=True)
class Step:
    """One command, and why it is needed: `reason` says what was found and what is wanted."""

    reason: str
    command: PyinfraCommand
    diff: tuple[str, ...] = ()  # lines of a unified diff, shown with --diff


@dataclass(frozen=True)
class Refusal:
    """This host cannot go on: what was found, what was wanted, what to do about it."""

    message: str


Plan = Sequence[Step | Refusal]


def refuse(message: str) -> StringCommand:
    """Return a command that fails on this host alone and shows the message."""
    return StringCommand("printf", r"'%s\n'", QuoteString(message), ">&2;", "exit", "1")


def changes(earlier: OperationMeta) -> bool:
    """Return whether an earlier operation changed something or, before it ran, will."""
    return earlier.did_change() if earlier.is_complete() else earlier.will_change


def carry_out(plan: Plan, *, settled: str) -> Generator[PyinfraCommand, None, None]:
    """Yield the plan's commands, saying why before each; `settled` describes an empty plan.

    In pyinfra's prepare phase (also with `--dry`) only the reasons are shown and a refusal fails
    the host at once; the other hosts go on.
    """
    host = context.host
    if not plan:
        host.noop(settled)
        return
    if not context.state.is_executing:
        for entry in plan:
            _foretell(entry)
        yield StringCommand("true")  # only counted: pyinfra stops at the first command here
        return
    for entry in plan:
        if isinstance(entry, Refusal):
            yield refuse(entry.message)
            continue
        host.log(entry.reason)
        _show_diff(entry)
        yield entry.command


def _foretell(entry: Step | Refusal) -> None:
    host, state = context.host, context.state
    operation = ", ".join(state.get_op_meta(host.current_op_hash or "").names)
    if isinstance(entry, Refusal):
        host.log_styled(f"{operation}: {entry.message}", fg="red", log_func=logger.error)
        state.fail_hosts({host})  # raises where no host is left
        # Ends this host's greenlet only; any Exception would end the run for every host.
        raise GreenletExit
    host.log(f"{operation}: {entry.reason}")
    _show_diff(entry)


def _show_diff(entry: Step) -> None:
    if not context.state.config.DIFF:
        return
    for line in entry.diff:
        colour = {"+": "green", "-": "red"}.get(line[:1])
        context.host.log(format_text(line.rstrip("\n"), colour) if colour else line.rstrip("\n"))
