"""A known token and the API key, looked for in all that the product shows, sends and keeps.

The host is reached over Systems Manager, so that the record of API calls is searched too. The tests
stand in their order: the last ones break what serves, take the secrets away again, and rehearse.
"""

import json
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desired.server_unit import API_KEY_PATH, UNIT
from operations.secret import TOKEN_PATH, TOKEN_UNIT
from pyinfra_ssm.emulator import Emulator
from tests.container import pyinfra_run, traces
from tests.container.host import Host
from tests.container.managed import managed
from tests.container.pyinfra_run import INVENTORY, ROOT
from tests.container.rehearsal import Rehearsal
from tests.container.stand_in import StandIn
from tests.secret.metadata import metadata_service
from tests.secret.secrets_manager import REGION, secrets_manager

pytestmark = pytest.mark.leak

TOKEN = "hf_PlantedTokenThatMustNotTravel"
SECRET = "hf/token"
KNOBS = {
    "hf_token_source": "secretsmanager",
    "hf_token_region": REGION,
    "hf_token_secret": SECRET,
    "api_key": "always",
}
CONVERGE = ("pyinfra", str(INVENTORY), "deploy.py", "--yes")
LOUD = ("--diff", "-vvv", "--debug")
PYINFRA_LOG = "pyinfra-debug.log"


@dataclass
class Planted:
    """The converged host with both secrets on it, and what came of putting them there.

    + since: the host's clock, in seconds, before either secret was there
    + cache: where the connector remembers on this machine what it asked of a host
    """

    stand_in: StandIn
    emulator: Emulator
    since: float
    cache: Path
    planting: str = ""
    secrets: list[str] = field(default_factory=lambda: [TOKEN])

    @property
    def host(self) -> Host:
        return self.stand_in.host

    def shown(self, *command: str, **knobs: object) -> str:
        """Return all that a command of the product shows, and what it leaves on this machine."""
        data = {**self.stand_in.data, **KNOBS, **knobs}
        environment = pyinfra_run.environment_of(self.host, data)
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**environment, "XDG_CACHE_HOME": str(self.cache)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        left = [*self.cache.rglob("*"), ROOT / PYINFRA_LOG]
        texts = [path.read_text(errors="replace") for path in left if path.is_file()]
        return "\n".join((done.stdout, done.stderr, *texts))

    def leaked(self, text: str) -> list[str]:
        """Return the secrets that the text shows, in any form."""
        return [
            secret for secret in self.secrets if any(form in text for form in traces.forms(secret))
        ]


@pytest.fixture(scope="module")
def planted(host: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    cache = tmp_path_factory.mktemp("cache")
    with (
        secrets_manager({SECRET: TOKEN}) as manager,
        metadata_service() as metadata,
        managed(host.host) as (reached, emulator),
    ):
        host.run(
            f"systemctl set-environment AWS_EC2_METADATA_SERVICE_ENDPOINT={metadata.url} "
            f"AWS_ENDPOINT_URL_SECRETS_MANAGER={manager.url}"
        )
        since = float(host.run("date +%s.%N"))
        planted = Planted(StandIn(reached, host.data), emulator, since, cache)
        planted.planting = planted.shown(*CONVERGE, *LOUD)
        planted.secrets.append(host.run(f"sed -n s/^VLLM_API_KEY=//p {API_KEY_PATH}"))
        yield planted
    mended = host.converge()
    assert mended.code == 0, mended.log[-4000:]


def test_both_secrets_are_planted(planted: Planted) -> None:
    assert f'HF_TOKEN="{TOKEN}"' in planted.host.run(f"cat {TOKEN_PATH}")
    assert [len(secret) for secret in planted.secrets] == [len(TOKEN), 64]
    assert planted.stand_in.plan(**KNOBS).clean


def test_a_run_that_puts_them_there_does_not_show_them(planted: Planted) -> None:
    assert "Ensure the token is on the host" in planted.planting
    assert planted.leaked(planted.planting) == []


COMMANDS = {
    "a run": (*CONVERGE, *LOUD),
    "a run as JSON": (*CONVERGE, "--json"),
    "a dry run": ("pyinfra", str(INVENTORY), "deploy.py", "--dry", *LOUD),
    "a dry run as JSON": ("pyinfra", str(INVENTORY), "deploy.py", "--dry", "--json", *LOUD),
    "the inventory": ("pyinfra", str(INVENTORY), "debug-inventory", "-vvv", "--debug"),
    "the fact about the token": (
        *("pyinfra", str(INVENTORY), "-vvv", "--debug", "fact", "facts.secret.SecretFacts"),
        *(f"path={TOKEN_PATH}", "variable=HF_TOKEN"),
    ),
    "the fact about the key": (
        *("pyinfra", str(INVENTORY), "-vvv", "--debug", "fact", "facts.secret.SecretFacts"),
        *(f"path={API_KEY_PATH}", "variable=VLLM_API_KEY"),
    ),
    "drift": ("drift", str(INVENTORY), *LOUD),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_shows_them(planted: Planted, command: tuple[str, ...]) -> None:
    text = planted.shown(*command)
    assert planted.host.address in text or "nothing has drifted" in text
    assert planted.leaked(text) == []


def test_the_benchmark_uses_the_key_and_shows_it_to_nobody(planted: Planted) -> None:
    reports = planted.cache / "reports"
    small = {"bench_contexts": [64], "bench_outputs": [8], "bench_concurrencies": [1]}
    knobs = {**small, "bench_repeats": 1, "bench_reports": str(reports)}
    command = ("pyinfra", str(INVENTORY), "bench.py", "--yes", *LOUD)
    with traces.watched_arguments(planted.host) as seen:
        text = planted.shown(*command, **knobs)
    (run,) = reports.glob("*.json")
    states = {cell["state"] for cell in json.loads(run.read_text())["cells"]}
    assert "ok" in states
    assert any("bench" in words for words in seen)
    assert planted.leaked(text + "".join(seen)) == []


def test_the_record_of_api_calls_has_neither_over_either_transport(planted: Planted) -> None:
    text = planted.shown(*CONVERGE, *LOUD, ssm_transport="run-command")
    assert "No changes" in text
    assert planted.leaked(text) == []
    calls = planted.emulator.calls
    assert {call["action"] for call in calls} >= {"StartSession", "SendCommand"}
    assert planted.leaked(json.dumps(calls)) == []


PRINTING = (
    "journalctl --no-pager --all --output verbose",
    "systemctl show '*' --no-pager --all",
    "systemctl show-environment",
)


def test_on_the_host_they_lie_in_their_own_files_and_nowhere_else(planted: Planted) -> None:
    found = traces.take(planted.host, planted.secrets, planted.since, PRINTING)
    assert found.files == {TOKEN_PATH: ["600", 0], API_KEY_PATH: ["600", 0]}
    assert found.arguments == found.commands == []


def test_whoever_has_one_dumps_no_core(planted: Planted) -> None:
    found = traces.take(planted.host, planted.secrets, planted.since, ())
    group = planted.host.run(f"systemctl show --property ControlGroup --value {UNIT}")
    served = planted.host.run(f"cat $(find /sys/fs/cgroup -path '*{group}/cgroup.procs')").split()
    # Not all of them show it: the engine writes its own name over its environment.
    assert found.core_limits
    assert found.core_limits.keys() <= set(served)
    assert set(found.core_limits.values()) == {"0"}
    for unit in (UNIT, TOKEN_UNIT):
        assert planted.host.run(f"systemctl show --property LimitCORE --value {unit}") == "0"


FAILING = {
    "no such secret": ({"hf_token_secret": "hf/none"}, "no token: "),
    "a server that does not start": ({"server_arguments": ["--no-such-flag"]}, "no-such-flag"),
}


@pytest.mark.parametrize(("knobs", "reason"), FAILING.values(), ids=FAILING)
def test_a_run_that_fails_shows_its_reason_and_no_secret(
    planted: Planted, knobs: dict[str, object], reason: str
) -> None:
    with traces.watched_arguments(planted.host) as seen:
        text = planted.shown(*CONVERGE, *LOUD, **knobs)
    assert reason in text
    assert planted.leaked(text + "".join(seen)) == []


def test_a_run_that_takes_them_away_shows_nothing_and_leaves_nothing(planted: Planted) -> None:
    text = planted.shown(*CONVERGE, *LOUD, hf_token_source="none", api_key="auto")
    assert planted.leaked(text) == []
    found = traces.take(planted.host, planted.secrets, planted.since, PRINTING)
    assert (found.files, found.arguments, found.core_limits, found.commands) == ({}, [], {}, [])


def test_a_try_keeps_what_is_in_its_environment_to_itself(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsal = Rehearsal(planted.host.name, int(str(planted.stand_in.data["port"])))
    for variable, secret in zip(("HF_TOKEN", "VLLM_API_KEY"), planted.secrets, strict=True):
        monkeypatch.setenv(variable, secret)
    words = ("--name", rehearsal.name, "--port", str(rehearsal.port))
    try:
        text = planted.shown("tests.container.rehearsal", *words)
        kept = {path: path.read_bytes() for path in rehearsal.folder.rglob("*") if path.is_file()}
    finally:
        shutil.rmtree(rehearsal.folder, ignore_errors=True)
    assert "Verdict: all is well" in text
    assert {"converge.log", "summary.json"} <= {path.name for path in kept}
    assert planted.leaked(text + b"".join(kept.values()).decode(errors="replace")) == []
    found = traces.take(planted.host, planted.secrets, planted.since, PRINTING)
    assert (found.files, found.arguments, found.core_limits, found.commands) == ({}, [], {}, [])


@given(st.binary(), st.text("abcXYZ019_-", min_size=8), st.binary())
def test_a_secret_is_found_in_hex_and_base64_wherever_it_stands(
    before: bytes, secret: str, behind: bytes
) -> None:
    text = before + secret.encode() + behind
    plain, hexadecimal, *encoded = traces.forms(secret)
    assert plain == secret
    assert hexadecimal in text.hex()
    assert any(form in b64encode(text).decode() for form in encoded)
