"""systemd accepts every unit that a host can be given, and each says where to edit it."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

from desired import server_unit, stages
from operations import build, model, prewarm, readiness, secret
from operations.filesystem import Entry, File
from settings import Settings
from tests.check.knobs import HOST_GROUPS, ROOT, values

TEMPLATES = sorted(path for path in (ROOT / "templates").glob("*.j2") if "html" not in path.name)
PLAIN_UNITS = sorted((ROOT / "files").rglob("*.service"))
LOGIC = (nodes.Assign, nodes.Call, nodes.Macro, nodes.Include, nodes.Import, nodes.Extends)
PROGRAM = re.compile(r"^(Exec\w+=[-+!@:]*)(/\S+)", re.MULTILINE)
TOKEN = {
    "hf_token_source": "secretsmanager",
    "hf_token_region": "us-east-1",
    "hf_token_secret": "token",
}
PREWARM = {"prewarm": True}


def _units() -> Iterator[tuple[str, str]]:
    """Yield a title and the text of every unit that some group's hosts get."""
    for path in PLAIN_UNITS:
        yield path.name, path.read_text()
    for group in HOST_GROUPS:
        settings = Settings.of(group, {**values("all"), **values(group), **TOKEN, **PREWARM})
        entries: list[Entry] = [
            *server_unit.entries(stages.service(settings)),
            *secret.token_entries(stages.token_source(settings)),
            readiness.unit_file(stages.stopwatch(settings)),
            *prewarm.entries(stages.prewarm(settings)),
        ]
        for entry in entries:
            if isinstance(entry, File) and entry.path.endswith(".service"):
                yield f"{group}:{Path(entry.path).name}", entry.content


UNITS = dict(_units())


def _with_programs_of_this_machine(text: str) -> str:
    """Return the unit with /bin/true for each program that only the host has."""
    return PROGRAM.sub(
        lambda line: line[0] if Path(line[2]).exists() else f"{line[1]}/bin/true", text
    )


@pytest.mark.parametrize(("title", "text"), UNITS.items(), ids=UNITS)
def test_systemd_accepts(title: str, text: str, tmp_path: Path) -> None:
    unit = tmp_path / title.split(":")[-1]
    unit.write_text(_with_programs_of_this_machine(text))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True
    )
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert complaints == []
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("title", "text"), UNITS.items(), ids=UNITS)
def test_a_unit_says_where_to_edit_it(title: str, text: str) -> None:
    first = text.splitlines()[0]
    assert re.fullmatch(r"# Managed by vllm-g5g; edit (templates|files)/\S+", first)
    assert (ROOT / first.split()[-1]).exists()


@pytest.mark.parametrize(("title", "text"), UNITS.items(), ids=UNITS)
def test_a_unit_names_no_job(title: str, text: str) -> None:
    """Systemd would keep the job's transient unit in memory, and refuse to start it again."""
    settings = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in settings if build.UNIT in line or model.UNIT in line] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_logic_beyond_if_and_for(path: Path) -> None:
    tree = jinja2.Environment(autoescape=False).parse(path.read_text())
    assert [type(node).__name__ for node in tree.find_all(LOGIC)] == []
