"""Token and key on a real systemd, from a metadata service and moto's Secrets Manager."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from operations.secret import TOKEN_PATH, TOKEN_SCRIPT, TOKEN_UNIT
from tests.container import host as hosts
from tests.container import pyinfra_run
from tests.container.engine import Engine
from tests.container.host import TEST_PREFIX, Host
from tests.container.pyinfra_run import Run
from tests.secret.metadata import Metadata, metadata_service
from tests.secret.secrets_manager import REGION, secrets_manager
from tests.secret.systemd_environment import parse

TOKEN = "hf_PlantedTokenThatMustNotTravel"
KEY = "/etc/vllm-g5g/api-key.env"
DATA = {
    "region": REGION,
    "secret_id": "hf/token",
    "keep_last": False,
    "api_key_file": KEY,
    "api_key_generation": 1,
}
OPERATIONS = ("unit", "token", "key")


@dataclass
class Vault:
    """A host with a role in front of a Secrets Manager."""

    host: Host
    metadata: Metadata

    def converge(self, *flags: str, **data: object) -> Run:
        deploy = "tests/container/deploys/secret.py"
        return pyinfra_run.run(self.host, {**DATA, **data}, *flags, deploy=deploy)

    def token(self) -> dict[str, str]:
        return parse(self.host.run(f"cat {TOKEN_PATH}") + "\n")


@pytest.fixture(scope="module")
def vault(booted: tuple[Engine, str]) -> Iterator[Vault]:
    host = hosts.boot(*booted, f"{TEST_PREFIX}secret-{os.getpid()}")
    secrets = {str(DATA["secret_id"]): TOKEN + "\n"}
    with secrets_manager(secrets) as manager, metadata_service() as metadata:
        host.run(
            f"systemctl set-environment AWS_EC2_METADATA_SERVICE_ENDPOINT={metadata.url} "
            f"AWS_ENDPOINT_URL_SECRETS_MANAGER={manager.url}"
        )
        yield Vault(host, metadata)
    host.remove()


@pytest.fixture(scope="module")
def first(vault: Vault) -> tuple[Run, Run]:
    """The fresh host's dry run and first run."""
    return vault.converge("--dry"), vault.converge()


@pytest.fixture
def converged(vault: Vault, first: tuple[Run, Run]) -> Vault:
    assert first[1].code == 0, first[1].log
    return vault


def test_the_first_run_does_what_was_foretold_and_the_second_nothing(converged, first):
    assert first[0].planned == first[1].changed == OPERATIONS
    assert converged.converge().clean
    assert converged.converge("--dry").clean


def test_the_token_is_roots_alone_and_comes_again_at_every_boot(converged):
    run = converged.host.run
    assert converged.token() == {"HF_TOKEN": TOKEN}
    assert run(f"stat -c '%a %U:%G' {TOKEN_PATH} /run/vllm-g5g").split("\n") == [
        "600 root:root",
        "700 root:root",
    ]
    assert run(f"systemctl is-enabled {TOKEN_UNIT}") == "enabled"
    before = converged.host.run("systemctl show --property Before --value vllm-token")
    assert "vllm.service" in before


DRIFTS = {
    "token file readable by others": (f"chmod 644 {TOKEN_PATH}", {"token"}),
    "token file of another owner": (f"chown daemon {TOKEN_PATH}", {"token"}),
    "token file gone": (f"rm {TOKEN_PATH}", {"token"}),
    "token file emptied": (f": >{TOKEN_PATH}", {"token"}),
    "token unit stopped": (f"systemctl stop {TOKEN_UNIT}", {"token"}),
    "token unit disabled": (f"systemctl disable {TOKEN_UNIT}", {"token"}),
    "token unit masked": (
        f"ln -sf /dev/null /etc/systemd/system/{TOKEN_UNIT}; systemctl daemon-reload",
        {"unit", "token"},
    ),
    "token unit edited": (
        f"sed -i s/us-west-2/us-east-1/ /etc/systemd/system/{TOKEN_UNIT}",
        {"unit", "token"},
    ),
    "token script edited": ("echo >>/usr/local/lib/vllm-g5g/fetch_token.py", {"unit"}),
    "key file readable by others": (f"chmod 640 {KEY}", {"key"}),
    "key file of another owner": (f"chown daemon {KEY}", {"key"}),
    "key file gone": (f"rm {KEY}", {"key"}),
    "key emptied": (f"sed -i s/=.*/=/ {KEY}", {"key"}),
}


@pytest.mark.drift
@pytest.mark.parametrize(("broken", "named"), DRIFTS.values(), ids=DRIFTS)
def test_drift_is_named_and_mended(converged, broken, named):
    converged.host.run(broken)
    foretold = converged.converge("--dry")
    assert set(foretold.planned) == named
    assert converged.converge().changed == foretold.planned
    assert converged.converge().clean
    assert converged.token() == {"HF_TOKEN": TOKEN}


def test_a_key_is_rotated_by_its_generation_alone(converged):
    first = converged.host.run(f"cat {KEY}")
    assert converged.converge("--dry", api_key_generation=2).planned == ("key",)
    assert converged.converge(api_key_generation=2).changed == ("key",)
    assert converged.host.run(f"cat {KEY}") != first
    assert converged.converge().changed == ("key",)  # and back, for the other tests


def test_a_fetch_that_fails_names_the_remedy_and_leaves_no_token(converged):
    converged.metadata.role = None
    try:
        failed = converged.converge(secret_id="hf/other")
        assert failed.code != 0
        assert "no token: this instance has no role. Attach an instance profile" in failed.log
        journal = converged.host.run(f"journalctl --unit {TOKEN_UNIT} --output cat --lines 40")
        assert "no token: this instance has no role" in journal
        assert converged.host.attempt(f"test -e {TOKEN_PATH}").returncode == 1
    finally:
        converged.metadata.role = "vllm-host"
    assert "token" in converged.converge().changed
    assert converged.converge().clean


BEFORE = {
    "it was fetched": "true",
    "it could not be fetched": (
        f"echo 'raise SystemExit(1)' >{TOKEN_SCRIPT}; ! systemctl restart {TOKEN_UNIT}"
    ),
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_where_no_token_is_wanted_any_more_systemd_knows_of_none(converged, before):
    converged.host.run(before)
    foretold = converged.converge("--dry", secret_id=None)
    assert foretold.planned == ("unit", "no token")
    assert converged.converge(secret_id=None).changed == foretold.planned
    states = "systemctl show --property LoadState,ActiveState --value"
    assert converged.host.run(f"{states} {TOKEN_UNIT}").split() == ["not-found", "inactive"]
    assert TOKEN_UNIT not in converged.host.run("systemctl list-units --all --plain --no-legend")
    assert converged.host.attempt(f"test -e {TOKEN_PATH}").returncode == 1
    assert converged.converge(secret_id=None).clean
    assert converged.converge().changed == ("unit", "token")  # and back, for the other tests


SEARCHED = (
    "journalctl --no-pager",
    "systemctl show '*' --no-pager --all",
    "cat /etc/systemd/system/*.service /run/systemd/system/*.service 2>/dev/null; true",
    "cat /proc/[0-9]*/cmdline",
    "grep -rl Planted /var /etc /tmp /root /usr/local /run --exclude=token.env; true",
)


@pytest.mark.leak
@pytest.mark.parametrize("flags", [("-vvv", "--debug"), ("--dry", "--diff"), ("--diff", "-vvv")])
def test_the_token_shows_in_no_output_at_any_verbosity(converged, flags):
    converged.host.run(f"systemctl restart {TOKEN_UNIT}; rm {TOKEN_PATH}")
    run = converged.converge(*flags)
    assert run.code == 0
    assert "Planted" not in run.log
    converged.converge()


@pytest.mark.leak
@pytest.mark.parametrize("command", SEARCHED)
def test_the_token_lies_nowhere_else_on_the_host(converged, command):
    assert converged.token() == {"HF_TOKEN": TOKEN}
    assert "Planted" not in converged.host.run(command)
