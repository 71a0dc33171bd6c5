"""When vLLM is built, and how many compilers run at once."""

import json
from dataclasses import replace

import pytest

from operations.build import GIB, BuildCheck, Places, jobs_for, plan
from operations.steps import Refusal
from tests.builds import BUILD, STAMP, built

PLACES = Places("/tree", "/py", "/stamp", "/work", "/log")
REASONS = {
    "built": ({}, []),
    "never built": ({"stamp": None}, ["has not been built"]),
    "at work": ({"stamp": None, "running": True}, ["is being built, waiting for it"]),
    "torch changed": ({"torch": "2.13.0"}, ["was compiled with torch 2.12.0, wanted 2.13.0"]),
    "uninstalled": ({"installed": ""}, ["is installed as nothing"]),
    "library deleted": (
        {"damaged": ["vllm/_C.abi3.so"], "damaged_count": 1},
        ["has 1 damaged files: vllm/_C.abi3.so"],
    ),
    "stamp of an older layout": (
        {"stamp": {**STAMP, "inputs": {"version": "0.32.0"}}},
        [
            "; ".join(
                f"was compiled with {name} nothing, wanted {value[:12]}"
                for name, value in STAMP["inputs"]["compiled"].items()
            )
        ],
    ),
}

# A changed build -> which half of the stamp tells it, and by which names.
HALVES = {
    "a Python patch": ({"python_source": "q"}, {"python": ["patches"]}),
    "a patch of what is compiled": ({"compiled_source": "d"}, {"compiled": ["source"]}),
    "a flag": ({"environment": {}}, {"compiled": ["environment"]}),
    "a served distribution": (
        {"requirements_lock": "cmake==4.4.5\nfastapi==1.1\n"},
        {"python": ["requirements"]},
    ),
    "a build tool": (
        {"requirements_lock": "cmake==4.5.0\nfastapi==1.0\n"},
        {"compiled": ["build tools"], "python": ["requirements"]},
    ),
    "what is checked": ({"check": BuildCheck((), ())}, {}),
}


@pytest.mark.parametrize(("change", "expected"), HALVES.values(), ids=HALVES)
def test_the_stamp_tells_what_compiles_again(change, expected):
    wanted = replace(BUILD, **change).inputs("2.12.0", "3.12.3")
    changed = {
        half: [name for name, value in values.items() if value != STAMP["inputs"][half][name]]
        for half, values in wanted.items()
    }
    assert {half: names for half, names in changed.items() if names} == expected


def test_a_python_patch_says_that_nothing_is_compiled_again():
    (step,) = plan(built(), replace(BUILD, python_source="q"), PLACES)
    assert step.reason == "vLLM 0.32.0 has patches p, wanted q; nothing is compiled again"


@pytest.mark.parametrize(("change", "reasons"), REASONS.values(), ids=REASONS)
def test_a_build_has_its_reason(change, reasons):
    steps = plan(built(**change), BUILD, PLACES)
    assert [step.reason.removeprefix("vLLM 0.32.0 ") for step in steps] == reasons


def test_no_interpreter_is_refused():
    (refusal,) = plan(None, BUILD, PLACES)
    assert isinstance(refusal, Refusal)


def test_the_job_is_bounded_so_that_the_agent_survives():
    (step,) = plan(built(stamp=None), BUILD, PLACES)
    job = json.loads(step.command.bits[0].connector_arguments["_stdin"])
    assert job["properties"] == {"MemoryMax": str(30 * GIB)}
    assert job["input"]["environment"]["MAX_JOBS"] == "16"


# By memory without FlashAttention 3: 16 GiB takes 10, capped by the cores; one always runs.
JOBS = {
    "g5g.xlarge": (4, 8, 3),
    "g5g.2xlarge": (8, 16, 8),
    "g5g.4xlarge": (16, 32, 16),
    "g5g.8xlarge": (32, 64, 32),
    "tiny": (2, 2, 1),
}


@pytest.mark.parametrize(("cores", "gib", "jobs"), JOBS.values(), ids=JOBS)
def test_jobs_fit_memory_and_cores(cores, gib, jobs):
    assert jobs_for(cores, gib * GIB) == jobs
