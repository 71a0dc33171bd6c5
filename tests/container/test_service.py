"""The served model on a real systemd: drift, deaths, a reboot, and a start that cannot work."""

import threading
import urllib.error
import urllib.request

import pytest

from desired.server_unit import API_KEY_PATH, ENVIRONMENT_PATH, RECORD_PATH, UNIT, UNIT_PATH
from tests.container.stand_in import StandIn

FILES = "Ensure the server's unit and environment are current"
SERVED = "Ensure tiny-gemma-4 is served and answers"
SMOKE = "Ensure what is served passed the smoke check"
DROP_IN = f"{UNIT_PATH}.d/50-by-hand.conf"
ADD_DROP_IN = f"mkdir -p {UNIT_PATH}.d && printf '[Service]\\nNice=5\\n' >{DROP_IN}"
RESTART = f"systemctl daemon-reload && systemctl restart {UNIT}"
# Longer than any start here; the deploy itself asks for an answer afterwards.
HEALTH_SECONDS = 600

DRIFTS = {
    "unit disabled": (f"systemctl disable {UNIT}", SERVED),
    "unit masked": (f"ln -sf /dev/null {UNIT_PATH} && systemctl daemon-reload", SERVED),
    "unit edited": (f"sed -i s/^Restart=.*/Restart=no/ {UNIT_PATH}", SERVED),
    "drop-in made by hand": (ADD_DROP_IN, SERVED),
    "drop-in in force": (f"{ADD_DROP_IN} && {RESTART}", SERVED),
    "stopped": (f"systemctl stop {UNIT}", SERVED),
    "running from another environment": (
        f"cp {ENVIRONMENT_PATH} /tmp/kept && sed -i s/HUB_OFFLINE=.*/HUB_OFFLINE=0/ "
        f"{ENVIRONMENT_PATH} && {RESTART} && cp /tmp/kept {ENVIRONMENT_PATH}",
        SERVED,
    ),
    "running from an older build": ("touch /var/lib/vllm-g5g/build.json", SERVED),
    "the record of its start is gone": (f"rm {RECORD_PATH}", SERVED),
    "environment file readable by nobody": (f"chmod 600 {ENVIRONMENT_PATH}", FILES),
    "environment file of another owner": (f"chown daemon {ENVIRONMENT_PATH}", FILES),
    "start check edited": ("echo >>/usr/local/lib/vllm-g5g/check_start.py", FILES),
}


@pytest.mark.drift
@pytest.mark.parametrize(("broken", "named"), DRIFTS.values(), ids=DRIFTS)
def test_drift_is_named_and_mended(host: StandIn, broken: str, named: str) -> None:
    host.run(broken)
    foretold = host.plan()
    assert named in foretold.planned, foretold.log[-4000:]
    assert set(foretold.planned) <= {FILES, SERVED, SMOKE}
    mended = host.converge()
    assert mended.code == 0, mended.log[-4000:]
    assert mended.changed == foretold.planned
    assert host.converge().clean


@pytest.mark.drift
def test_an_operators_own_unit_is_left_alone(host: StandIn) -> None:
    host.run("mkdir -p /etc/systemd/system/ssh.service.d && touch /etc/vllm-g5g/notes")
    assert host.plan().clean
    host.run("rmdir /etc/systemd/system/ssh.service.d && rm /etc/vllm-g5g/notes")


def answers(host: StandIn) -> None:
    """Wait until the server answers a chat; the wait's own verdict is shown where it does not."""
    port, model = host.data["port"], "tiny-gemma-4"
    host.run(
        f"until systemctl is-active --quiet {UNIT}; do sleep 1; done; "
        "cd /usr/local/lib/vllm-g5g; python3 -B -m bench startup "
        f"--url http://127.0.0.1:{port} --model {model} --question 'What is SRE?' "
        f"--deadline {HEALTH_SECONDS}"
    )


def main_pid(host: StandIn) -> str:
    return host.run(f"systemctl show --property MainPID --value {UNIT}")


def of_the_service(host: StandIn) -> set[str]:
    """Return the process ids that systemd counts to the unit."""
    group = host.run(f"systemctl show --property ControlGroup --value {UNIT}")
    return set(host.run(f"cat $(find /sys/fs/cgroup -path '*{group}/cgroup.procs')").split())


DEATHS = {
    "the engine": "kill -9 $(pgrep -f '[V]LLM::EngineCore')",
    "the API server": f"kill -9 $(systemctl show --property MainPID --value {UNIT})",
    "everything": f"systemctl kill --signal KILL {UNIT}",
}


@pytest.mark.parametrize("kill", DEATHS.values(), ids=DEATHS)
def test_it_is_back_and_answers_after_the_death_of(host: StandIn, kill: str) -> None:
    before = main_pid(host)
    old = of_the_service(host)
    host.run(kill)
    host.run(f"while [ $(systemctl show -p MainPID --value {UNIT}) = {before} ]; do sleep 1; done")
    answers(host)
    assert not old & of_the_service(host)
    left = host.run("pgrep -u vllm || true").split()
    assert set(left) == of_the_service(host)  # no orphan holds memory or the GPU
    assert host.plan().clean


def test_it_is_back_and_answers_after_a_reboot(host: StandIn) -> None:
    host.host.restart()
    answers(host)
    assert set(host.run("pgrep -u vllm").split()) == of_the_service(host)
    assert host.plan().clean


class Watch(threading.Thread):
    """Asks /health over and over; `seen` has the statuses that it was answered with."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.seen, self.over = url, set[int](), threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.2):
            try:
                with urllib.request.urlopen(self.url, timeout=5) as response:
                    self.seen.add(response.status)
            except urllib.error.HTTPError as error:
                self.seen.add(error.code)
            except OSError:
                continue


def test_a_server_that_is_healthy_and_dead_fails_the_deploy_with_the_reason(host: StandIn) -> None:
    watch = Watch(f"http://127.0.0.1:{host.data['port']}/health")
    host.run(f"systemctl stop {UNIT}")
    watch.start()
    try:
        run = host.converge(skip_patches=["cpu-slot-mapping.patch"])
    finally:
        watch.over.set()
        watch.join()
    try:
        assert 200 in watch.seen
        assert run.code != 0
        assert "the first chat kills its engine" in run.log
        assert run.log.index("cause: ") < run.log.index("--- last")
    finally:
        mended = host.converge()
    assert mended.code == 0, mended.log[-4000:]
    assert host.converge().clean


def test_a_start_without_its_checkpoint_says_so_at_once(host: StandIn) -> None:
    models = "/var/lib/vllm-g5g/models/tiny"
    host.run(f"systemctl stop {UNIT} && mv {models}/config.json /tmp/config.json")
    try:
        host.attempt(f"systemctl start {UNIT}")
        shown = host.run(f"journalctl --unit {UNIT} --output cat --lines 20")
        assert f"refusing to start: {models}/config.json is missing" in shown
    finally:
        host.run(f"mv /tmp/config.json {models}/config.json")
    answers(host)


SEARCHED = (
    "journalctl --no-pager",
    "systemctl show '*' --no-pager --all",
    "cat /proc/[0-9]*/cmdline",
    "cat /var/lib/vllm-g5g/*.json /var/log/vllm-g5g/* 2>/dev/null; true",
)


@pytest.mark.leak
def test_the_api_key_is_asked_for_and_shows_nowhere(host: StandIn) -> None:
    run = host.converge("-vvv", "--debug", "--diff", api_key="always")
    try:
        assert run.code == 0, run.log[-4000:]
        key = host.run(f"sed -n s/^VLLM_API_KEY=//p {API_KEY_PATH}")
        assert len(key) == 64
        assert key not in run.log
        for command in SEARCHED:
            assert key not in host.run(command), command
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{host.data['port']}/v1/models")
        assert host.plan(api_key="always").clean
    finally:
        mended = host.converge("-vvv", "--debug", "--diff")
    assert mended.code == 0, mended.log[-4000:]
    assert key not in mended.log  # nor when it is taken away again
    assert host.attempt(f"test -e {API_KEY_PATH}").returncode == 1
