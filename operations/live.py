"""A command that takes long: its output is shown as it comes, its failure is explained."""

from collections.abc import Callable, Sequence

from pyinfra import logger
from pyinfra.api import StringCommand
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.connectors.util import CommandOutput


class Live(StringCommand):
    """A command whose lines are shown one by one, at every verbosity.

    Where it fails, `evidence` makes a command from its output (one that shows a journal, the end
    of a log), and `explain` turns the lines of both into what the user reads: cause and remedy
    first. Without them, what was shown is all there is to know.
    """

    def __init__(
        self,
        command: StringCommand,
        *,
        evidence: Callable[[Sequence[str]], StringCommand] | None = None,
        explain: Callable[[Sequence[str]], Sequence[str]] | None = None,
    ) -> None:
        super().__init__(command, **command.connector_arguments)
        self.evidence = evidence
        self.explain = explain

    def execute(
        self, state: State, host: Host, connector_arguments: ConnectorArguments
    ) -> tuple[bool, CommandOutput]:
        """Run, and on failure explain; the empty output keeps pyinfra from printing it twice."""
        connector_arguments.update(self.connector_arguments)
        done, output = host.run_shell_command(
            self, print_output=True, print_input=state.print_input, **connector_arguments
        )
        if done:
            return done, output
        lines = [line.line for line in output]
        if self.evidence is not None:
            _, evidence = host.run_shell_command(self.evidence(lines), **connector_arguments)
            lines += [line.line for line in evidence]
        for line in self.explain(lines) if self.explain is not None else ():
            host.log_styled(line, fg="red", log_func=logger.error)
        return False, CommandOutput([])
