"""What keeps the layers apart, and the protocol testable without a network."""

import ast
import re
import sys
from pathlib import Path

import pytest

import pyinfra_ssm

PACKAGE = Path(pyinfra_ssm.__path__[0])
OURS = sorted(PACKAGE.glob("*.py"))
ON_THE_HOST = sorted((PACKAGE / "remote").glob("*.py"))
PURE = [
    "_arguments",
    "_backoff",
    "_channel",
    "_encryption",
    "_errors",
    "_events",
    "_handshake",
    "_host_program",
    "_liveness",
    "_messages",
    "_payloads",
    "_program",
    "_remedies",
    "_reordering",
    "_retransmission",
    "_run_scripts",
    "_shell",
    "_start_failure",
    "_states",
]


def imports(path: Path) -> set[str]:
    """Return the names of all modules that a file imports, wherever it does."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_only_the_session_has_a_clock_a_socket_and_threads(path: Path) -> None:
    if path.stem != "_session":
        assert not imports(path) & {"time", "socket", "threading", "select", "asyncio"}


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_imports_no_way_out(name: str) -> None:
    ways_out = {"boto3", "websocket", "subprocess", "urllib.request", "pyinfra_ssm._session"}
    assert not imports(PACKAGE / f"{name}.py") & ways_out


@pytest.mark.parametrize("path", ON_THE_HOST, ids=lambda path: path.stem)
def test_what_runs_on_the_host_needs_nothing_but_python(path: Path) -> None:
    modules = {name.partition(".")[0] for name in imports(path)}
    assert modules <= sys.stdlib_module_names | {"pyinfra_ssm"}
    ours = {name for name in imports(path) if name.startswith("pyinfra_ssm")}
    assert all(name.startswith("pyinfra_ssm.remote") for name in ours)


@pytest.mark.parametrize("path", ON_THE_HOST, ids=lambda path: path.stem)
def test_what_runs_on_the_host_is_python_3_7(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 7))
    if path.stem != "__init__":
        assert "from __future__ import annotations" in path.read_text()


@pytest.mark.parametrize("path", [*OURS, *ON_THE_HOST], ids=lambda path: path.stem)
def test_a_module_fits_its_limit(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 305


def test_the_readme_has_a_room_for_each_module() -> None:
    rooms = (PACKAGE / "README.md").read_text().partition("| room | modules |")[2]
    named = set(re.findall(r"`(\w+)`", rooms))
    assert {path.stem for path in OURS} - {"__init__"} == named
