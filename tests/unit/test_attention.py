"""When attention kernels are checked, how, and what is said of what was found."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.attention import FoundAttention
from files.probes.shared_memory.verdict import TOLERANCE, faults
from operations.attention import Check, command, digest_of, plan, program_files
from operations.filesystem import File
from operations.steps import Refusal, Step

CHECK = Check(tree="/opt/a tree", source="5" * 64, python="/opt/pytorch/bin/python3")
CHECKED = FoundAttention(digest=digest_of(CHECK, "3.7.0"), triton="3.7.0")


def reasons(found: FoundAttention | None, check: Check = CHECK) -> list[str]:
    entries = plan(found, check, "/programs", "/state/attention.json")
    return [entry.reason if isinstance(entry, Step) else entry.message for entry in entries]


def test_what_was_checked_and_passed_is_not_checked_again() -> None:
    assert reasons(CHECKED) == []


CHANGES = {
    "never checked": ({**CHECKED, "digest": None}, CHECK, "were never checked for 7.5"),
    "another Triton": ({**CHECKED, "triton": "3.8.0"}, CHECK, "have changed"),
    "another source": (CHECKED, replace(CHECK, source="6" * 64), "have changed"),
    "a lower limit": (CHECKED, replace(CHECK, limit=49152), "have changed"),
    "no longer run": (CHECKED, replace(CHECK, run=False), "have changed"),
}


@pytest.mark.parametrize(("found", "check", "reason"), CHANGES.values(), ids=CHANGES)
def test_what_decides_asks_for_a_check(found: FoundAttention, check: Check, reason: str) -> None:
    (told,) = reasons(found, check)
    assert told.startswith("/opt/a tree: the attention kernels ")
    assert reason in told


REFUSED = {
    "no interpreter": (None, "found no /opt/pytorch/bin/python3"),
    "no Triton": (FoundAttention(digest=None, triton=None), "found no triton in /opt/pytorch"),
}


@pytest.mark.parametrize(("found", "message"), REFUSED.values(), ids=REFUSED)
def test_a_host_without_triton_is_refused(found: FoundAttention | None, message: str) -> None:
    (entry,) = plan(found, CHECK, "/programs", "/state/attention.json")
    assert isinstance(entry, Refusal)
    assert message in entry.message


def test_the_command_quotes_what_we_did_not_write() -> None:
    run = command(CHECK, "/my programs", "/state/a.json", "0" * 64)
    assert run.get_raw_value() == (
        "cd '/my programs' && /opt/pytorch/bin/python3 -B -m shared_memory --capability=7.5 "
        f"--limit=65536 --record=/state/a.json --digest={'0' * 64} --numerics=cuda "
        "-- '/opt/a tree' >/dev/null"
    )


def test_the_whole_probe_is_brought_to_the_host() -> None:
    paths = [entry.path for entry in program_files("/programs")]
    assert paths[0] == "/programs/shared_memory"
    assert "/programs/shared_memory/__main__.py" in paths
    assert all(e.content for e in program_files("/programs") if isinstance(e, File))


def kernel(shared: int) -> dict[str, object]:
    return {"head": 512, "phase": "prefill", "shared": shared}


def comparison(relative_error: float) -> dict[str, object]:
    return {"head": 256, "phase": "decode", "relative_error": relative_error}


NOT_A_NUMBER = float("nan")
FAULTS = {
    "exactly the limit fits": ([65536], [], []),
    "a byte more does not": (
        [65537],
        [],
        ["head 512 prefill takes 65,537 bytes of 65,536 a block"],
    ),
    "as near as float16 comes": ([], [2.5e-4], []),
    "too far": ([], [0.02], ["head 256 decode is 2.0e-02 from plain torch, over 1e-03"]),
    "not a number": ([], [NOT_A_NUMBER], ["head 256 decode is nan from plain torch, over 1e-03"]),
}


@pytest.mark.parametrize(("sizes", "errors", "told"), FAULTS.values(), ids=FAULTS)
def test_faults(sizes: list[int], errors: list[float], told: list[str]) -> None:
    assert list(faults(map(kernel, sizes), map(comparison, errors), 65536)) == told


@given(st.lists(st.integers(0, 2**18)), st.lists(st.floats()), st.integers(1, 2**18))
def test_each_launch_that_is_wrong_is_told_once(
    sizes: list[int], errors: list[float], limit: int
) -> None:
    told = list(faults(map(kernel, sizes), map(comparison, errors), limit))
    wrong = [size for size in sizes if size > limit]
    far = [error for error in errors if not error <= TOLERANCE]
    assert len(told) == len(wrong) + len(far)
