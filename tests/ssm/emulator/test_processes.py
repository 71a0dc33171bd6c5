import asyncio
import signal
import subprocess

from pyinfra_ssm.emulator import processes
from pyinfra_ssm.emulator.machines import Place, ThisMachine


def test_the_status_of_what_is_killed_stays_with_asyncio(monkeypatch):
    """Popen.poll() takes it where the process has just ended, and asyncio reports 255."""

    async def kill_one() -> int | None:
        place = Place(ThisMachine({}, reboot_url=""), mark="", elevated=False)
        silent = asyncio.subprocess.DEVNULL
        process = await processes.start(place, ["sleep", "100"], stdout=silent, stderr=silent)
        monkeypatch.setattr(subprocess.Popen, "poll", _not_to_be_called)
        await processes.kill(place, process)
        return process.returncode

    assert asyncio.run(kill_one()) == -signal.SIGKILL


def _not_to_be_called(process: "subprocess.Popen[bytes]") -> None:
    raise AssertionError("the child was polled")
