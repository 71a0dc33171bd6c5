import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyinfra_ssm.emulator import DEFAULT_ID, Emulator
from pyinfra_ssm.emulator.command_line import main, parser
from tests.ssm.emulator.client import Client, is_alive

ROOT = Path(__file__).parents[3]


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], Emulator]]:
    command = [sys.executable, "-m", "pyinfra_ssm.emulator", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        emulator = Emulator()
        emulator.endpoint_url = json.loads(process.stdout.readline())["endpoint_url"]
        try:
            yield process, emulator
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_every_process_it_started(number: signal.Signals) -> None:
    arguments = ("--this-machine", "--faults", '{"start_delay_s": 0}')
    with running(*arguments) as (process, emulator):
        client = Client(emulator, command="setsid sleep 612 & exec sh", document=_INTERACTIVE)
        client.expect(b"# ")
        client.send(b"echo pids: $$ $(pgrep -xf 'sleep 612').\n")
        client.until(lambda: client.text().endswith(b".\r\n# "))
        pids = client.text().rpartition(b"pids: ")[2].partition(b".")[0].split()
        process.send_signal(number)
        assert process.wait(20) == 0
    assert len(pids) == 2
    assert not [pid for pid in pids if is_alive(int(pid))]


_INTERACTIVE = "AWS-StartInteractiveCommand"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_passes_into_its_namespaces(number: signal.Signals) -> None:
    with running("--this-machine", "--namespace") as (process, _):
        process.send_signal(number)
        assert process.wait(20) == 0


def test_a_container_gets_no_more_namespaces(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--container", "web", "--namespace"])
    assert "a container has namespaces already" in capsys.readouterr().err


def test_it_ends_with_the_process_that_holds_it() -> None:
    with Emulator() as emulator:
        assert emulator.sessions == []
        process = emulator.process
    assert process.returncode == 0


def test_options_belong_to_the_instance_before_them() -> None:
    arguments = parser().parse_args(
        [
            *("--container", "web", "--tag", "Role=inference", "--tag", "Team=a=b"),
            *("--container", "build", "--engine", "docker", "--instance-id", "i-1"),
            "--this-machine",
        ]
    )
    assert arguments.instances == [
        {
            "instance_id": DEFAULT_ID,
            "container": "web",
            "tags": {"Role": "inference", "Team": "a=b"},
        },
        {"instance_id": "i-1", "container": "build", "tags": {}, "engine": "docker"},
        {"instance_id": "i-00000000000000002", "container": None, "tags": {}},
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tag", "a=b"], "needs a --container or --this-machine before it"),
        (["--this-machine", "--tag", "a"], "--tag wants KEY=VALUE, not a"),
    ],
)
def test_wrong_options_are_explained(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(arguments)
    assert message in capsys.readouterr().err


def test_a_container_that_is_not_there_is_named() -> None:
    command = [sys.executable, "-m", "pyinfra_ssm.emulator", "--container", "absent"]
    engine = ["--engine", "sh -c 'echo no such container; exit 125' --"]
    ended = subprocess.run([*command, *engine], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "container absent runs no commands: no such container" in ended.stderr
