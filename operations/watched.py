"""A command that takes minutes: its output is shown as it comes, its failure is explained."""

from collections.abc import Callable, Sequence

from pyinfra import logger
from pyinfra.api import StringCommand
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.api.host import Host
from pyinfra.api.state import State
from pyinfra.connectors.util import CommandOutput


class Watched(StringCommand):
    """A command whose lines are shown live, also without -v.

    Where it fails, `evidence` makes a command from its output (one that shows a journal, the end
    of a log), and `explain` turns the lines of both into what the user reads: cause and remedy
    first.
    """

    def __init__(
        self,
        command: StringCommand,
        *,
        evidence: Callable[[Sequence[str]], StringCommand],
        explain: Callable[[Sequence[str]], Sequence[str]],
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
        said = [line.line for line in output]
        _, evidence = host.run_shell_command(self.evidence(said), **connector_arguments)
        for line in self.explain([*said, *(line.line for line in evidence)]):
            host.log_styled(line, fg="red", log_func=logger.error)
        return False, CommandOutput([])
