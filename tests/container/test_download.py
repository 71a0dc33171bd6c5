"""A checkpoint of the model hub: who downloads it, whose it is then, and what a refusal leaves."""

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.container import pyinfra_run
from tests.container.pyinfra_run import Run
from tests.container.stand_in import StandIn
from tests.container.upstreams.hub import Hub, model_hub

REPOSITORY, TOKEN = "org/model", "hf_PlantedTokenThatMustNotTravel"
WEIGHTS = "model.safetensors"
FILES = {"config.json": b"{}", WEIGHTS: b"1" * 100_000, "sub/more.json": b"[]", "x.gguf": b"2"}
WANTED = ["config.json", WEIGHTS, "sub/more.json"]
DIRECTORY = "/var/lib/vllm-g5g/models/org--model"
TOKEN_FILE = "/run/vllm-g5g-test/token.env"

# What the host has of the process that downloads, and what another of its user can see of it.
LOOK = """
import glob, json, subprocess
def asked(*words):
    done = subprocess.run(["runuser", "-u", "vllm", "--", *words], capture_output=True)
    return done.returncode == 0
for process in glob.glob("/proc/[0-9]*"):
    try:
        words = open(process + "/cmdline").read().split("\\0")
    except OSError:
        continue  # ended meanwhile
    if words[-3:-1] == ["org/model", "main"]:
        status = dict(line.split(":\\t", 1) for line in open(process + "/status"))
        found = {name: status[name].split() for name in ("Uid", "Groups", "CapEff", "NoNewPrivs")}
        found["environment"] = open(process + "/environ").read()
        found["seen"] = [f for f in ("environ", "maps") if asked("cat", f"{process}/{f}")]
        print(json.dumps(found))
"""


@dataclass
class Downloads:
    """A converged host, and the hub that it downloads from."""

    stand_in: StandIn
    hub: Hub

    def converge(self, *flags: str) -> Run:
        data = {
            "repository": REPOSITORY,
            "revision": "main",
            "hub": self.hub.url,
            "token_file": TOKEN_FILE,
            "directory": DIRECTORY,
        }
        deploy = "tests/container/deploys/model.py"
        return pyinfra_run.run(self.stand_in.host, data, *flags, deploy=deploy)


@pytest.fixture
def downloads(host: StandIn) -> Iterator[Downloads]:
    folder = TOKEN_FILE.rpartition("/")[0]
    host.run(f"install -d -m 700 {folder}; umask 077; echo 'HF_TOKEN=\"{TOKEN}\"' >{TOKEN_FILE}")
    with model_hub(REPOSITORY, FILES, TOKEN) as hub:
        yield Downloads(host, hub)
    host.run(f"rm -rf {folder} {DIRECTORY} {DIRECTORY}.*")


def whole(host: StandIn) -> bool:
    """Return whether the wanted files and no others are served, root's and readable by all."""
    lists = f"find {DIRECTORY} -not -path '*/.*' -printf '%y %m %U %G %P\\n' | sort"
    found = [line.split(" ") for line in host.run(lists).splitlines()]
    owners = {tuple(fields[:4]) for fields in found}
    names = [fields[4] for fields in found if fields[0] == "f"]
    return owners == {("d", "755", "0", "0"), ("f", "644", "0", "0")} and names == WANTED


def test_the_services_user_downloads_with_the_token_and_root_has_it_then(
    downloads: Downloads,
) -> None:
    host, seen = downloads.stand_in, []
    look = f"/usr/bin/python3 -I -c {shlex.quote(LOOK)}"
    downloads.hub.meanwhile = lambda name: seen.append(json.loads(host.run(look)))
    assert downloads.converge("--dry").planned == ("checkpoint",)
    run = downloads.converge()
    assert run.changed == ("checkpoint",), run.log[-4000:]
    assert whole(host)
    assert downloads.converge().clean

    user = host.run("id -u vllm")
    assert len(seen) == len(WANTED)
    for process in seen:
        assert process["Uid"] == [user] * 4
        assert process["Groups"] == []
        assert process["CapEff"] == ["0" * 16]
        assert process["NoNewPrivs"] == ["1"]
        assert TOKEN not in process["environment"]
        assert process["seen"] == []


def test_a_download_that_broke_off_goes_on_and_is_whole_only_at_its_end(
    downloads: Downloads,
) -> None:
    downloads.hub.lost = (WEIGHTS,)
    assert downloads.converge().code != 0
    assert downloads.stand_in.attempt(f"test -e {DIRECTORY}").returncode == 1

    downloads.hub.token = "another"
    refused = downloads.converge()
    assert refused.code != 0
    assert "the hub refused the token" in refused.log
    assert downloads.stand_in.attempt(f"test -e {DIRECTORY}").returncode == 1

    downloads.hub.token, downloads.hub.lost = TOKEN, ()
    downloads.hub.sent.clear()
    assert downloads.converge().changed == ("checkpoint",)
    assert whole(downloads.stand_in)
    assert WEIGHTS in downloads.hub.sent
