"""What a knob may be, and what a wrong one is told."""

import runpy
from pathlib import Path

import pytest
from pyinfra.api.exceptions import DeployError

from settings import Settings

GROUP_DATA = Path(__file__).resolve().parents[2] / "group_data"
GROUPS = {
    name: {
        knob: value
        for knob, value in runpy.run_path(str(GROUP_DATA / f"{name}.py")).items()
        if not knob.startswith("__")
    }
    for name in ("all", "g5g", "g4dn", "cpu")
}
PROFILES = {name: {**GROUPS["all"], **GROUPS[name]} for name in ("g5g", "g4dn", "cpu")}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_profile_is_valid(profile):
    Settings.of("host", profile)


def test_every_knob_has_its_default_in_all_and_nowhere_else():
    assert set(GROUPS["all"]) == set(Settings.model_fields)
    assert [f.is_required() for f in Settings.model_fields.values()].count(False) == 0


WRONG = {
    "misspelt": ({"vlm_version": "0.32.0"}, "unknown knob vlm_version: did you mean vllm_version?"),
    "unknown": ({"colour": "red"}, "unknown knob colour: see group_data/all.py"),
    "wrong type": ({"swap_gib": "many"}, "knob swap_gib is 'many'"),
    "relative interpreter": ({"python": "bin/python3"}, "knob python is 'bin/python3'"),
    "unlisted version": ({"vllm_version": "9.9.9"}, "'9.9.9' is not one of"),
    "GPU without its capability": ({"cuda_arch": None}, "cuda_arch = None cannot work"),
    "GPU without a toolkit": ({"cuda_toolkit": None}, "needs cuda_toolkit"),
    "no CPU kernels": (
        {"device": "cpu", "cuda_arch": None, "vllm_version": "0.33.0"},
        "vllm_version 0.33.0 has no CPU kernels to install: use one of 0.32.0",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_knob_is_named_with_its_host(change, message):
    with pytest.raises(DeployError) as caught:
        Settings.of("gpu-03", {**PROFILES["g5g"], **change})
    assert str(caught.value).startswith("[gpu-03] ")
    assert message in str(caught.value)


def test_a_knob_without_a_value_is_named():
    data = {key: value for key, value in PROFILES["g5g"].items() if key != "swap_gib"}
    with pytest.raises(DeployError, match="knob swap_gib has no value"):
        Settings.of("host", data)


def test_data_of_connectors_is_not_ours():
    Settings.of("host", {**PROFILES["cpu"], "ssm_region": "us-east-1", "docker_identifier": "x"})
