"""Locks: how they are read, and what is installed for them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.requirements import parse_lock, plan, wanted_versions
from operations.steps import Refusal

LOCKS = sorted((Path(__file__).resolve().parents[2] / "files" / "locks").glob("*.txt"))
ENVIRONMENT = {"python_full_version": "3.11.2", "platform_machine": "aarch64"}
LOCK = """# Made by hand
numpy==2.3.5 ; python_full_version < '3.13' \\
    --hash=sha256:00 \\
    --hash=sha256:11
    # via vllm
numpy==2.4.6 ; python_full_version >= '3.13' --hash=sha256:22
Jinja2==3.1.6 --hash=sha256:33
"""
WANTED = {"numpy": "2.3.5", "jinja2": "3.1.6"}

names = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)
numbers = st.lists(st.integers(0, 99), min_size=1, max_size=3)


def found(installed):
    return {"environment": ENVIRONMENT, "installed": installed}


def test_markers_are_judged_where_the_interpreter_lives():
    assert wanted_versions(parse_lock(LOCK), ENVIRONMENT) == WANTED


PLANS = {
    "as locked": (WANTED, []),
    "more than locked": ({**WANTED, "torch": "2.12.0"}, []),
    "one missing": ({"numpy": "2.3.5"}, ["jinja2 is missing, wanted 3.1.6"]),
    "one newer": ({**WANTED, "numpy": "9.0"}, ["numpy is 9.0, wanted 2.3.5"]),
}


@pytest.mark.parametrize(("installed", "reasons"), PLANS.values(), ids=PLANS)
def test_plan(installed, reasons):
    steps = plan(found(installed), LOCK, "/py")
    assert [step.reason.removeprefix("/py: ") for step in steps] == reasons


def test_no_interpreter_is_refused():
    (refusal,) = plan(None, LOCK, "/py")
    assert isinstance(refusal, Refusal)


@pytest.mark.parametrize("line", ["numpy>=2", "numpy", "./numpy.whl", "-r other.txt", "a==1,<2"])
def test_what_is_not_pinned_is_no_lock(line):
    with pytest.raises(ValueError, match="not "):
        parse_lock(line + "\n")


@given(st.dictionaries(names.map(str.lower), numbers, max_size=8))
def test_what_is_written_is_read(versions):
    pinned = {name: ".".join(map(str, number)) for name, number in versions.items()}
    text = "".join(f"{n}=={v} \\\n    --hash=sha256:00\n    # via x\n" for n, v in pinned.items())
    assert wanted_versions(parse_lock(text), ENVIRONMENT) == pinned


@given(st.text(max_size=60))
def test_any_text_is_a_lock_or_an_error(text):
    try:
        parse_lock(text)
    except ValueError as error:
        assert str(error).startswith("not ")  # noqa: PT017


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_lock_that_ships_is_one(lock):
    assert parse_lock(lock.read_text())
    assert "torch" not in {entry.name for entry in parse_lock(lock.read_text())}
