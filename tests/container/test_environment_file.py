"""What we write, the real systemd reads back: environment files and command lines."""

import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from desired.unit_syntax import command_line, environment_file
from tests.container import host as hosts
from tests.container.engine import Engine
from tests.container.host import TEST_PREFIX, Host

NASTY = "\"'\\`$#;%={}()*~&|<>! \t\r\x01\x7fabcXYZ09-_é東😀"
SHOW_ENVIRONMENT = (
    "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k[:2] == 'V_'}))"
)


@pytest.fixture(scope="module")
def plain(booted: tuple[Engine, str]) -> Iterator[Host]:
    """A booted host with nothing of ours on it."""
    host = hosts.boot(*booted, f"{TEST_PREFIX}quoting-{os.getpid()}")
    yield host
    host.remove()


def generated(count: int, seed: int) -> list[str]:
    """Return strings of up to 40 characters that quoting trips over; the same for a seed."""
    chosen = random.Random(seed)
    return ["".join(chosen.choices(NASTY, k=chosen.randint(0, 40))) for _ in range(count)]


def put(host: Host, text: str, place: str, folder: Path) -> None:
    source = folder / Path(place).name
    source.write_text(text)
    host.engine.run("cp", str(source), f"{host.name}:{place}")


def test_systemd_reads_back_a_thousand_generated_values(plain: Host, tmp_path: Path) -> None:
    values = {f"V_{number:04}": value for number, value in enumerate(generated(1000, seed=7))}
    put(plain, environment_file(values, "a thousand values"), "/tmp/values.env", tmp_path)
    shown = plain.run(
        "systemd-run --quiet --pipe --wait --property=EnvironmentFile=/tmp/values.env "
        f'python3 -X utf8 -c "{SHOW_ENVIRONMENT}"'
    )
    assert json.loads(shown) == values


def _started_with(host: Host, words: Sequence[str], folder: Path) -> list[str]:
    """Return the arguments of a service whose ExecStart= was made from `words`."""
    program = "import json, sys; json.dump(sys.argv[1:], open('/tmp/words.json', 'w'))"
    line = command_line(["/usr/bin/python3", "-X", "utf8", "-c", program, *words])
    put(host, f"[Service]\nType=oneshot\nExecStart={line}\n", "/tmp/words.service", folder)
    host.run(
        "cp /tmp/words.service /run/systemd/system/ && systemctl daemon-reload "
        "&& systemctl start words"
    )
    found: list[str] = json.loads(host.run("cat /tmp/words.json"))
    return found


def test_systemd_splits_a_command_line_into_the_same_words(plain: Host, tmp_path: Path) -> None:
    words = [*generated(300, seed=11), "", ";", "a b", "%n", "$HOME", "${HOME}", "two\nlines"]
    assert _started_with(plain, words, tmp_path) == words
