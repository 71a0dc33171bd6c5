"""An instance that is this machine in namespaces: what commands do there stays there."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyinfra_ssm.emulator import Emulator, Faults, Instance
from tests.ssm.emulator.client import is_alive, non_interactive


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(Faults(start_delay_s=0), namespace=True) as emulator:
        yield emulator


def said(emulator: Emulator, script: str) -> str:
    client = non_interactive(emulator, f"sh -c '{script}'")
    client.until(lambda: client.closed is not None)
    return client.text().decode()


def test_host_name_and_mounts_are_its_own(emulator: Emulator, tmp_path: Path) -> None:
    script = (
        f"hostname elsewhere && mount -t tmpfs none {tmp_path} && touch {tmp_path}/x && hostname"
    )
    assert said(emulator, script) == "elsewhere\n"
    assert list(tmp_path.iterdir()) == []
    assert socket.gethostname() != "elsewhere"


def test_it_sees_and_reaches_its_own_processes_alone(emulator: Emulator) -> None:
    seen = said(emulator, "cat /proc/[0-9]*/cmdline").replace("\0", " ")
    assert "pyinfra_ssm.emulator" in seen  # the first process
    assert "pytest" not in seen


def test_daemons_end_with_it() -> None:
    with Emulator(Faults(start_delay_s=0), namespace=True) as emulator:
        said(emulator, "setsid sleep 613 >/dev/null 2>&1 & echo started")
        (daemon,) = [pid for pid in Path("/proc").glob("[0-9]*") if "sleep\000613" in line(pid)]
    assert not is_alive(int(daemon.name))


def line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_a_container_has_namespaces_already() -> None:
    with pytest.raises(ValueError, match="a container has namespaces already"):
        Emulator(instances=[Instance(container="web")], namespace=True)
