"""Each patch says, in the fields of DEP-3, why it exists and where it went."""

import datetime
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.versions import patch_header
from upkeep.trees import PATCH_FILES

FILES = sorted(PATCH_FILES.iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_patch_says_what_it_is_for_and_where_it_went(path: Path) -> None:
    header = patch_header.parse(path.read_text())
    assert {"Description", "Origin", "Forwarded", "Last-Update"} <= header.keys()
    assert "\n" in header["Description"][0], "a headline, and below it the reason"
    assert max(map(len, path.read_text().split("\n---\n")[0].splitlines())) <= 100
    datetime.date.fromisoformat(header["Last-Update"][0])


HEADERS = {
    "no end": ("Description: x\n", "no line ---"),
    "folding without a field": (" folded\n---\n", "not a DEP-3 header line: ' folded'"),
    "prose": ("Description: x\nprose\n---\n", "not a DEP-3 header line: 'prose'"),
}


@pytest.mark.parametrize(("text", "message"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        patch_header.parse(text)


visible = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
lines = st.lists(st.text(visible, min_size=1, max_size=9), min_size=1, max_size=3).map(" ".join)
values = st.lists(lines, min_size=1, max_size=3).map("\n".join)
fields = st.sampled_from(["Description", "Origin", "Bug", "Forwarded", "Last-Update"])


@given(st.dictionaries(fields, st.lists(values, min_size=1, max_size=2), min_size=1))
def test_a_header_is_read_as_it_was_written(header: dict[str, list[str]]) -> None:
    entries = [(name, value) for name, given_values in header.items() for value in given_values]
    text = "\n".join(f"{name}: " + value.replace("\n", "\n ") for name, value in entries)
    assert patch_header.parse(f"{text}\n---\nthe patch\n") == header
