"""What the fact makes of systemctl's and sha256sum's answers."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from facts.units import PROPERTIES, FoundUnit, Units

NAMES = st.from_regex(r"[A-Za-z0-9:_.\\@-]+\.(service|timer)", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]))
DIGESTS = st.just("") | st.from_regex(r"[0-9a-f]{64}", fullmatch=True)


def printed(name: str, unit: FoundUnit) -> list[str]:
    properties = [f"{key}={value}" for key, value in unit["state"].items()]
    mark = "\\" if "\\" in name else ""
    digest = [f"{mark}{unit['sha256']}  /etc/systemd/system/{name}"] if unit["sha256"] else []
    return [f"unit {name}", *properties, *digest]


@st.composite
def units(draw: st.DrawFn) -> dict[str, FoundUnit]:
    states = st.dictionaries(st.sampled_from(PROPERTIES), VALUES)
    found = st.builds(lambda state, sha256: FoundUnit(state=state, sha256=sha256), states, DIGESTS)
    return draw(st.dictionaries(NAMES, found))


@given(units())
def test_what_was_printed_is_found(found: dict[str, FoundUnit]) -> None:
    lines = [line for name, unit in found.items() for line in printed(name, unit)]
    assert Units().process(lines) == found


@given(st.lists(st.text()))
def test_any_lines_give_an_answer(lines: list[str]) -> None:
    assert all(set(unit) == {"state", "sha256"} for unit in Units().process(lines).values())


def test_a_unit_without_a_file_has_no_digest_and_says_nothing_on_the_way() -> None:
    command = Units().command(["no-such 'unit.service"]).get_raw_value()
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert Units().process(done.stdout.splitlines())["no-such 'unit.service"]["sha256"] == ""
