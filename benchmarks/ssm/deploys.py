"""Whole runs of pyinfra on a converged host: facts in advance, and this project's own deploy."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.ssm.hosts import ONE_WAY_MS, PYTHON, ROUND_TRIP, surroundings
from benchmarks.ssm.target import Target, elapsed
from pyinfra_ssm.emulator import DEFAULT_ID, Emulator, Faults, Instance

ROOT = Path(__file__).resolve().parents[2]
REHEARSED = ROOT / ".try" / "stand-in.json"  # what `make try` remembers of its container
MOST_COMMANDS = 80
FILES = 30
RUNS = 3

_DEPLOY = f"""
from io import StringIO
from pyinfra import host
from pyinfra.operations import files
for number in range({FILES}):
    files.put(src=StringIO(f"content {{number}}"), dest=f"{{host.data.folder}}/{{number}}")
"""


def foresight() -> Iterator[Target]:
    """A dry run of a converged host far away may take a second more than one close by."""
    with TemporaryDirectory() as folder, surroundings({"XDG_CACHE_HOME": folder}):
        Path(folder, "deploy.py").write_text(_DEPLOY)
        command = [
            *_pyinfra(f"@ssm/{DEFAULT_ID}", "deploy.py"),
            "--data",
            f"folder={folder}",
            "--data",
            f"ssm_python={PYTHON}",
        ]
        seconds = {}
        for delay in (0.0, ONE_WAY_MS):
            with Emulator(Faults(delay_ms=delay)) as emulator, surroundings(emulator.environment):
                _run([*command, "-y"], Path(folder))
                _run([*command, "--dry"], Path(folder))  # what it asks is remembered
                begun = time.perf_counter()
                _run([*command, "--dry"], Path(folder))
                seconds[delay] = time.perf_counter() - begun
        yield Target("foresight-extra", seconds[ONE_WAY_MS] - seconds[0.0], 1, "s")


def rehearsed() -> Iterator[Target]:
    """Measure on the container of `make try`, if that is there."""
    engine = shutil.which("podman") or shutil.which("docker") or "podman"
    if not REHEARSED.exists():
        print("deploy: not measured; `make try` first", file=sys.stderr)
        return
    yield from no_change_run("vllm-g5g-try", engine)


def no_change_run(container: str, engine: str) -> Iterator[Target]:
    """deploy.py on the container of `make try`, which is converged: nothing but round trips.

    The quickest of some runs: whatever else this machine does only adds to it. Before them, one
    that nobody measures leaves the bytecode that any earlier run leaves.
    """
    stand_in: Mapping[str, object] = json.loads(REHEARSED.read_text())
    address = {"address": f"@ssm/{DEFAULT_ID}", "data": stand_in["data"]}
    fleet = [Instance(container=container, engine=engine)]
    variables = {"VLLM_G5G_STAND_IN": json.dumps(address)}
    with (
        Emulator(Faults(delay_ms=ONE_WAY_MS), fleet) as emulator,
        surroundings(emulator.environment | variables),
    ):
        command = _pyinfra("tests/container/inventory.py", "deploy.py", "-y", "-v")
        _run(command, ROOT)
        took = min(elapsed(lambda: _run(command, ROOT)) for _ in range(RUNS))
        shown = _run(command, ROOT)
    found = re.search(r"(\d+) remote commands and files", shown)
    if found is None:
        raise AssertionError("pyinfra did not say how many commands it ran")
    count = int(found.group(1))
    yield Target("no-change-commands", count, MOST_COMMANDS, "")
    yield Target("no-change-run", took, 1.3 * count * ROUND_TRIP + 3, "s")


def _pyinfra(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pyinfra", *arguments]


def _run(command: list[str], folder: Path) -> str:
    """Run pyinfra; return all that it showed."""
    path = os.environ.get("PYTHONPATH", "")
    result = subprocess.run(
        command,
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), path))),
            "PYTHONDONTWRITEBYTECODE": "",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)} failed:\n{result.stdout}")
    return result.stdout
