"""Containers, through an engine that is a stub: it takes `exec` as podman and Docker do, with a
second terminal of its own and a process that signals to the engine do not reach."""

import json
import sys
from collections.abc import Iterator

import pytest

from pyinfra_ssm.emulator import Emulator, Faults, Instance
from pyinfra_ssm.emulator.machines import Container
from tests.ssm.emulator.client import (
    Client,
    assert_input_is_clean,
    assert_interrupt_ends_it,
    is_alive,
)

ENGINE = f"""#!{sys.executable}
import json, os, pty, signal, subprocess, sys

arguments = sys.argv[1:]
assert arguments.pop(0) == "exec"
options, variables = {{}}, {{}}
while arguments[0].startswith("--"):
    flag = arguments.pop(0)
    if flag == "--env":
        name, _, value = arguments.pop(0).partition("=")
        variables[name] = value
    elif flag in ("--user", "--workdir"):
        options[flag] = arguments.pop(0)
    else:
        options[flag] = True
name = arguments.pop(0)
if arguments[0] == "id":
    print(f"uid=1000({{arguments[1]}})")
    sys.exit()
variables |= {{"STUB_OPTIONS": json.dumps(options), "STUB_NAME": name}}
os.environ.update(variables)
os.chdir(options["--workdir"])
if "--tty" in options:
    sys.exit(os.waitstatus_to_exitcode(pty.spawn(arguments)))
process = subprocess.Popen(arguments, start_new_session=True)
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.exit(process.wait())
"""


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    engine = tmp_path_factory.mktemp("engine") / "engine"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    instance = Instance(container="web", engine=str(engine), environment={"EXTRA": "1"})
    with Emulator(Faults(start_delay_s=0), [instance]) as emulator:
        yield emulator


def test_a_session_runs_on_the_terminal_inside_as_ssm_user(emulator: Emulator) -> None:
    client = Client(emulator, command="stty raw -echo; exec sh")
    client.expect(b"# ")
    client.send(b'PS1=; echo "$STUB_OPTIONS $STUB_NAME $HOME $EXTRA $TERM"; tty\n')
    client.until(lambda: b"/dev/pts/" in client.text())
    options, _, rest = client.text().removeprefix(b"# ").partition(b"}")
    assert json.loads(options + b"}") == {
        "--interactive": True,
        "--tty": True,
        "--user": "ssm-user",
        "--workdir": "/",
    }
    assert rest.startswith(b" web /home/ssm-user 1 xterm-256color\n")
    client.close()


def test_both_terminals_let_every_byte_pass(emulator: Emulator) -> None:
    assert_input_is_clean(Client(emulator, command="stty raw -echo; exec sh"))


def test_an_interrupt_reaches_the_command_inside(emulator: Emulator) -> None:
    assert_interrupt_ends_it(emulator)


def test_a_terminated_session_leaves_no_shell_inside(emulator: Emulator) -> None:
    client = Client(emulator, command="stty -echo; exec sh")
    client.expect(b"# ")
    client.send(b"echo pid=$$.\n")
    client.until(lambda: client.text().endswith(b".\r\n# "))
    pid = int(client.text().rpartition(b"pid=")[2].partition(b".")[0])
    client.ssm.terminate_session(SessionId=client.session_id)
    client.until_closed()
    emulator.reboot(seconds=0)  # returns once the sessions' processes are gone
    assert not is_alive(pid)


def test_elevated_commands_run_as_root() -> None:
    argv = Container("web", "podman --runtime runc", {}).command(
        ["id"], mark="m", elevated=True, terminal=False, cwd="/tmp"
    )
    assert argv[:8] == [
        *("podman", "--runtime", "runc", "exec", "--user", "root", "--workdir", "/tmp")
    ]
    assert argv[-6:] == ["web", "sh", "-c", '"$@"; exit $?', "ssm-emulator:m", "id"]
    assert "HOME=/root" in argv
