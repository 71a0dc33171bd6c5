"""The runtimes: what each is started with and asked with, and that only one is left."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from facts.units import FoundUnit
from operations.requirements import parse_lock
from operations.runtime import plan
from runtimes import RUNTIMES, others
from tests.servers import CPU

LOCKS = Path(__file__).resolve().parents[2] / "files" / "locks"
VARIABLES = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "2"}
SERVER = replace(CPU, environment=VARIABLES)


def test_vllm_is_asked_by_name_and_transformers_by_path() -> None:
    assert RUNTIMES["vllm"].request_model(SERVER) == "tiny"
    assert RUNTIMES["transformers"].request_model(SERVER) == SERVER.model


def test_transformers_serves_the_same_checkpoint_on_the_same_port() -> None:
    words = RUNTIMES["transformers"].argv(SERVER)
    assert words[:6] == [
        SERVER.python,
        "-P",
        "-m",
        "transformers.cli.transformers",
        "serve",
        SERVER.model,
    ]
    assert words[6:] == [
        *("--host", "127.0.0.1", "--port", "8000", "--device", "cpu", "--dtype", "float16"),
    ]
    on_gpu = RUNTIMES["transformers"].argv(replace(SERVER, gpus=1))
    assert on_gpu[on_gpu.index("--device") + 1] == "cuda:0"


def test_vllms_own_variables_are_not_handed_to_transformers() -> None:
    environment = RUNTIMES["transformers"].environment(SERVER)
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert not [name for name in environment if name.startswith("VLLM_")]


@pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)
def test_a_runtime_has_a_unit_of_its_own_and_a_lock_that_is_there(runtime: Any) -> None:
    assert runtime.unit not in others(runtime)
    assert len(others(runtime)) == len(RUNTIMES) - 1
    if runtime.lock:
        assert parse_lock((LOCKS / runtime.lock).read_text())


UNITS = {
    "never there": ({"LoadState": "not-found", "ActiveState": "inactive"}, "", None),
    "running": ({"ActiveState": "active"}, "ab12", "systemctl disable --now"),
    "stopped, still on disk": ({"ActiveState": "failed"}, "ab12", "systemctl disable --now"),
    "running, file removed by hand": ({"ActiveState": "active"}, "", "systemctl stop"),
    "no systemd": ({}, "", None),
}


@pytest.mark.parametrize(("state", "sha256", "command"), UNITS.values(), ids=UNITS)
def test_what_another_runtime_left_goes(
    state: dict[str, str], sha256: str, command: str | None
) -> None:
    found: FoundUnit = {"state": state, "sha256": sha256}
    commands = [str(step.command) for step in plan({"transformers.service": found})]
    assert len(commands) == (1 if command else 0)
    assert all(found.startswith(f"{command} -- transformers.service") for found in commands)
