"""Many hosts at once, in a process that gevent has patched as pyinfra's own is.

`python -m benchmarks.ssm.fleet HOSTS COMMANDS` prints JSON: seconds, and bytes of memory in use.
"""

# ruff: noqa: E402  gevent has to patch before anything else is imported, as pyinfra_cli makes it
from gevent import monkey

monkey.patch_all()

import gc
import json
import sys
import time
from typing import Any

from pyinfra.api import Config, Inventory, State, StringCommand
from pyinfra.api.connect import connect_all, disconnect_all

from benchmarks.ssm.hosts import PYTHON


def work(hosts: int, commands: int) -> dict[str, float]:
    """Connect to all hosts at once and run the commands on each, one after the other."""
    names = [f"@ssm/i-{number:017x}" for number in range(hosts)]
    data = {"ssm_python": PYTHON, "ssm_prefetch": False}
    begun = time.perf_counter()
    state = State(Inventory((names, data)), Config(PARALLEL=hosts))
    connect_all(state)
    jobs = [state.pool.spawn(_work_on, host, commands) for host in state.inventory]
    for job in jobs:
        job.get()
    seconds = time.perf_counter() - begun
    gc.collect()
    memory = _resident()
    disconnect_all(state)
    return {"seconds": seconds, "bytes": memory}


def _work_on(host: Any, commands: int) -> None:
    for _ in range(commands):
        ok, output = host.run_shell_command(StringCommand("echo here"))
        if not ok or output.stdout != "here":
            raise AssertionError(f"{host}: {output.output}")


def _resident() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


if __name__ == "__main__":
    print(json.dumps(work(int(sys.argv[1]), int(sys.argv[2]))))
