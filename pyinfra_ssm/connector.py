"""`@ssm/...` hosts for pyinfra, over AWS Systems Manager."""

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping
from io import IOBase
from typing import TYPE_CHECKING, Any

from pyinfra import logger
from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.api.output import echo, format_text
from pyinfra.api.state import StateStage
from pyinfra.connectors.base import BaseConnector
from pyinfra.connectors.util import (
    CommandOutput,
    execute_command_with_sudo_retry,
    extract_control_arguments,
    make_unix_command_for_host,
    remove_any_sudo_askpass_file,
)

from pyinfra_ssm._accounts import account_of
from pyinfra_ssm._arguments import path_of, request_of, user_of
from pyinfra_ssm._errors import HostTimeout, Interrupted, SSMError
from pyinfra_ssm._knobs import KNOBS, ConnectorData
from pyinfra_ssm._local_files import reading, writing
from pyinfra_ssm._names import instance_ids
from pyinfra_ssm._output import Lines
from pyinfra_ssm._prefetch import Foresight, Memory, default_folder
from pyinfra_ssm._reach import Choice, reach
from pyinfra_ssm._session_transport import SessionTransport
from pyinfra_ssm._transport import Ending, Request, SessionOptions, Stream, Transport

if TYPE_CHECKING:
    from pyinfra.api.host import Host
    from pyinfra.api.state import State


class HostError(OSError):
    """This host failed; pyinfra shows the text and goes on with the others."""


class SSMConnector(BaseConnector):
    """
    Reach hosts through AWS Systems Manager: no open port, no SSH, no AWS CLI, no S3.

    .. code:: shell

        pyinfra @ssm/i-0123456789abcdef0 deploy.py
        pyinfra @ssm/mi-0123456789abcdef0 exec -- uptime
        pyinfra @ssm/tag:Role=inference deploy.py

    Commands run as root, by ``sudo -n`` in the session.
    """

    handles_execution = True
    data_cls = ConnectorData
    data_meta = KNOBS
    data: ConnectorData

    def __init__(self, state: "State", host: "Host") -> None:
        super().__init__(state, host)
        self._transport: Transport | None = None
        self._foresight: Foresight | None = None
        self._was_connected = False
        self._sent = 0  # commands and files of this connection, those in advance too

    @staticmethod
    def make_names_data(name: str) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        """Yield the host that `i-...` or `mi-...` names, or those that `tag:Key=Value` does."""
        for instance_id in instance_ids(name):
            yield f"@ssm/{instance_id}", {"ssm_target": instance_id}, ["@ssm"]

    # Connection

    def connect(self) -> None:
        """Open a session; after a reboot, wait for the agent to come back first."""
        self.disconnect()
        choice = Choice(
            str(self.data["ssm_transport"]), self._options(), self.data["ssm_secrets_in_history"]
        )
        patience = self.data["ssm_return_limit"] if self._was_connected else 0
        account = account_of(self.data["ssm_profile"], self.data["ssm_region"])
        try:
            self._transport = reach(account, self._target(), choice, patience, self._warn)
            self._was_connected = True
            self._look_ahead(self._transport)
        except (SSMError, OSError) as error:
            if isinstance(error, Interrupted) and self._was_connected:
                # After a ConnectError, pyinfra's reboot would try again until its time is up.
                raise HostError(f"[{self.host.name}] could not connect again: {error}") from error
            raise ConnectError(f"Could not connect to {self._target()}: {error}") from error

    def disconnect(self) -> None:
        """End the session, on the host too."""
        self._end_foresight()
        if self._transport is not None:
            remove_any_sudo_askpass_file(self.host)  # pyinfra does so when it is too late
            self._transport.close()
            self._transport = None
            self._tell(f"{self._sent} remote commands and files")
        self._sent = 0

    def _target(self) -> str:
        return self.data["ssm_target"] or self.host.name.removeprefix("@ssm/")

    def _options(self) -> SessionOptions:
        return SessionOptions(
            self.data["ssm_document"],
            self.data["ssm_bulk_document"],
            self.data["ssm_python"],
            self.data["ssm_payload_size"],
        )

    def _tell(self, text: str) -> None:
        if self.state.print_fact_info:  # -v
            logger.info(f"{self.host.print_prefix}{text}")

    def _warn(self, text: str) -> None:
        logger.warning(f"{self.host.print_prefix}{text}")

    def _connected(self) -> Transport:
        if self._transport is None:
            raise HostError(f"{self.host.name} is not connected")
        return self._transport

    def _next_request(self) -> Transport:
        self._sent += 1
        return self._connected()

    # Facts in advance

    def _look_ahead(self, transport: Transport) -> None:
        if not self.data["ssm_prefetch"] or not isinstance(transport, SessionTransport):
            return
        if self.state.current_stage > StateStage.Prepare:
            return
        if (folder := default_folder()) is None:
            return
        deploy = [self.state.cwd or "", *(a for a in sys.argv[1:] if not a.startswith("-"))]
        foresight = Foresight(Memory(folder, self.host.name, deploy))
        with contextlib.suppress(SSMError):  # the first command says it better, or gets a new one
            foresight.begin(transport.begin)
            self._foresight = foresight
            self._sent += foresight.foreseen

    def _end_foresight(self) -> None:
        if self._foresight is None:
            return
        foresight, self._foresight = self._foresight, None
        foresight.end()
        if foresight.foreseen:
            self._tell(
                f"{foresight.answered} facts were answered in advance, "
                f"with {foresight.foreseen} remembered commands"
            )

    # Commands

    def run_shell_command(
        self,
        command: StringCommand,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> tuple[bool, CommandOutput]:
        """Run a command; True if it ended with 0, or with one of `_success_exit_codes`."""
        is_fact = _asked_by_a_fact() and self.state.current_stage == StateStage.Prepare
        control = extract_control_arguments(arguments)  # type: ignore[arg-type]

        def execute() -> tuple[int, CommandOutput]:
            unix = make_unix_command_for_host(self.state, self.host, command, **arguments)
            if print_input:
                echo(f"{self.host.print_prefix}>>> {unix}", err=True)
            return self._execute(unix, control, print_output, is_fact)

        # The prompt for sudo's password needs somebody to answer it.
        if arguments.get("_sudo") and sys.stdin is not None and sys.stdin.isatty():
            code, output = execute_command_with_sudo_retry(
                self.host,
                arguments,  # type: ignore[arg-type]
                execute,
            )
        else:
            code, output = execute()
        return code in (control.get("_success_exit_codes") or [0]), output

    def _execute(
        self, unix: StringCommand, control: Mapping[str, Any], print_output: bool, is_fact: bool
    ) -> tuple[int, CommandOutput]:
        request = request_of(unix, control)
        lines = Lines(functools.partial(self._print_line, print_output), terminal=request.terminal)
        ending = None
        if is_fact and self._foresight is not None:
            ending = self._foresight.answer(request, lines.add)
        elif not is_fact:
            self._end_foresight()
        ending = ending or self._ask(request, lines)
        if ending.signal and not ending.timed_out:
            lines.add(
                Stream.STDERR, f"The command was killed by signal {ending.signal}.\n".encode()
            )
        output = lines.finish()
        if ending.timed_out:
            raise TimeoutError(f"{unix} did not end within {request.timeout:g} s")
        return ending.code, output

    def _ask(self, request: Request, lines: Lines) -> Ending:
        try:
            return self._next_request().run(request, lines.add)
        except SSMError as error:
            raise HostError(f"[{self.host.name}] could not run a command: {error}") from error

    def _print_line(self, wanted: bool, stream: Stream, line: str) -> None:
        if wanted:
            shown = format_text(line, "red") if stream is Stream.STDERR else line
            echo(f"{self.host.print_prefix}{shown}", err=True)

    # Files

    def put_file(
        self,
        filename_or_io: str | IOBase,
        remote_filename: str,
        remote_temp_filename: str | None = None,  # a file is written beside its target
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> bool:
        """Write a file: 0600 from its first moment if it is new, as before if it is not."""
        self._end_foresight()
        path = path_of(remote_filename, arguments)
        with self._moving(f"write {path}"), reading(filename_or_io) as source:
            limit = arguments.get("_timeout") or None
            self._next_request().put(path, source, user_of(arguments), limit)
        if print_output:
            echo(f"{self.host.print_prefix}file uploaded: {remote_filename}", err=True)
        return True

    def get_file(
        self,
        remote_filename: str,
        filename_or_io: str | IOBase,
        remote_temp_filename: str | None = None,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Any,
    ) -> bool:
        """Read a file, checked by its digest; without success the local one stays as it is."""
        path = path_of(remote_filename, arguments)
        with self._moving(f"read {path}"), writing(filename_or_io) as sink:
            limit = arguments.get("_timeout") or None
            self._next_request().get(path, sink, user_of(arguments), limit)
        if print_output:
            echo(f"{self.host.print_prefix}file downloaded: {remote_filename}", err=True)
        return True

    @contextlib.contextmanager
    def _moving(self, what: str) -> Iterator[None]:
        """Make what goes wrong with a file what pyinfra takes for a failure of this host."""
        try:
            yield
        except HostTimeout as error:
            raise TimeoutError(f"could not {what}: {error}") from error
        except SSMError as error:
            raise HostError(f"[{self.host.name}] could not {what}: {error}") from error

    def check_can_rsync(self) -> None:
        """Refuse files.rsync: pyinfra takes this exception for a refusal and shows its text."""
        raise NotImplementedError("rsync needs SSH; over SSM use files.put or files.sync")


def _asked_by_a_fact() -> bool:
    """Whether pyinfra's own fact machinery runs this command: that is what makes it read-only."""
    frame = sys._getframe(2)  # the caller of run_shell_command: Host's method of that name
    caller = frame.f_back
    return caller is not None and caller.f_globals.get("__name__") == "pyinfra.api.facts"
