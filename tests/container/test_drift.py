"""Drift of the tree, the interpreter, the build, the checkpoint and what proves them.

Each case breaks one thing by other means than ours. The dry run names the operation that mends it,
and what follows from that; nothing else. A run does just that, and the next finds nothing to do.
"""

import pytest

from tests.container.stand_in import StandIn

SITE = "/opt/pytorch/lib/python3.11/site-packages"
TREE = "/opt/vllm-g5g/src"
IN_TREE = f"git -c safe.directory='*' -c user.name=x -c user.email=x@localhost -C {TREE}"
STATE = "/var/lib/vllm-g5g"

PACKAGES = "Ensure the system packages are installed"
ACCOUNT = "Ensure the account vllm exists"
DIRECTORIES = "Ensure the directories exist"
SOURCE = "Ensure the tree is vLLM 0.32.0 with our patches"
LOCK = "Ensure the interpreter has what the lock names"
BUILD = "Ensure vLLM 0.32.0 is built from that tree and installed"
CHECKPOINT = "Ensure the checkpoint tiny is complete"
SERVED = "Ensure tiny-gemma-4 is served and answers"
PROGRAMS = "Ensure the measuring programs are current"
UNITS = "Ensure the server's unit and environment are current"
PREWARM = "Ensure prewarming is on"
SMOKE = "Ensure what is served passed the smoke check"

MINE = f"{SITE}/mine-1.dist-info"
# As a switch of the runtime would leave it: systemd goes on to call it enabled.
WANT_PREWARM_ELSEWHERE = (
    "cd /etc/systemd/system && mkdir transformers.service.wants && "
    "mv vllm.service.wants/vllm-prewarm.service transformers.service.wants/ && "
    "systemctl daemon-reload"
)

DRIFTS = {
    "package purged": ("dpkg --purge --force-depends libnuma1", (PACKAGES,)),
    "login shell given": ("usermod --shell /bin/bash vllm", (ACCOUNT,)),
    "log directory open to all": ("chmod 777 /var/log/vllm-g5g", (DIRECTORIES,)),
    "configuration given away": ("chown vllm /etc/vllm-g5g", (DIRECTORIES,)),
    "tree edited": (f"echo '# edit' >>{TREE}/vllm/envs.py", (SOURCE,)),
    "junk in the tree": (f"touch {TREE}/vllm/junk.py", (SOURCE,)),
    "tree on another commit": (f"{IN_TREE} checkout --quiet v0.32.0", (SOURCE,)),
    "patch reverted": (f"{IN_TREE} revert --no-edit HEAD", (SOURCE,)),
    "tree deleted": (f"rm -rf {TREE}", (SOURCE,)),
    "locked distribution removed": (f"rm -r {SITE}/einops*", (LOCK,)),
    "library deleted": (f"rm {SITE}/vllm/_C.abi3.so", (BUILD, SERVED, SMOKE)),
    "record of the installation deleted": (
        f"rm {SITE}/vllm-*.dist-info/RECORD",
        (BUILD, SERVED, SMOKE),
    ),
    "stamp deleted": (f"rm {STATE}/build.json", (BUILD, SERVED, SMOKE)),
    "weights cut short": (
        f"truncate --size=-1 {STATE}/models/tiny/model.safetensors",
        (CHECKPOINT, SERVED, SMOKE),
    ),
    "measuring program edited": (
        "echo '# edit' >>/usr/local/lib/vllm-g5g/bench/text.py",
        (PROGRAMS,),
    ),
    "smoke record deleted": (f"rm {STATE}/smoke.json", (SMOKE,)),
    "prewarm's unit edited": (
        "sed -i s/^Nice=.*/Nice=0/ /etc/systemd/system/vllm-prewarm.service",
        (UNITS, PREWARM),
    ),
    "prewarm's program edited": ("echo '# edit' >>/usr/local/lib/vllm-g5g/prewarm.py", (UNITS,)),
    "prewarm disabled": ("systemctl disable vllm-prewarm.service", (PREWARM,)),
    "prewarm wanted by another server": (WANT_PREWARM_ELSEWHERE, (PREWARM,)),
}


@pytest.mark.drift
@pytest.mark.parametrize(("script", "operations"), DRIFTS.values(), ids=DRIFTS)
def test_drift_is_named_and_mended(host: StandIn, script: str, operations: tuple[str, ...]) -> None:
    host.run(script)
    foretold, run, after = host.plan(), host.converge(), host.plan()
    assert run.code == 0, run.log[-4000:]
    assert (foretold.planned, run.changed, after.planned) == (operations, operations, ())


KEPT = {
    "an operator's own file": "touch /etc/vllm-g5g/notes /usr/local/lib/vllm-g5g/mine.py",
    "a distribution of the operator's": (
        f"mkdir -p {MINE} && printf 'Name: mine\\nVersion: 1\\n' >{MINE}/METADATA"
    ),
    "a newer release of a package": (
        "sed -i '/^Package: libnuma1$/,/^$/s/^Version: .*/Version: 99.0-1/' /var/lib/dpkg/status"
    ),
    "a build's own objects": f"mkdir -p {TREE}/build && touch {TREE}/build/kernel.o",
}


@pytest.mark.drift
@pytest.mark.parametrize("script", KEPT.values(), ids=KEPT)
def test_what_is_not_ours_stays(host: StandIn, script: str) -> None:
    host.run(script)
    assert host.plan().planned == ()


def test_two_drifts_at_once_are_both_named_and_mended(host: StandIn) -> None:
    host.run(f"rm {TREE}/setup.py; chmod 700 /opt/vllm-g5g")
    foretold, run, after = host.plan(), host.converge(), host.plan()
    both = (DIRECTORIES, SOURCE)
    assert (foretold.planned, run.changed, after.planned) == (both, both, ())
