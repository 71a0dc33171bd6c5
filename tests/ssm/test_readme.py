"""The knobs in the README are those of the code; `python -m tests.ssm.test_readme` writes them."""

from pathlib import Path

from pyinfra_ssm._knobs import KNOBS, ConnectorData

README = Path(__file__).parents[2] / "pyinfra_ssm" / "README.md"
BEGIN, END = "<!-- knobs: generated from _knobs.py; a test compares -->\n", "<!-- end of knobs -->"


def table() -> str:
    rows = [
        f"| `{name}` | `{meta.default!r}` | {meta.description} |" for name, meta in KNOBS.items()
    ]
    return "\n".join(["| name | default | meaning |", "|---|---|---|", *rows, ""])


def written(text: str) -> str:
    """Return the README with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def test_the_readme_has_every_knob_with_its_default() -> None:
    assert README.read_text() == written(README.read_text())


def test_every_knob_has_a_type_and_a_description() -> None:
    assert KNOBS.keys() == ConnectorData.__annotations__.keys()
    assert all(meta.description for meta in KNOBS.values())


if __name__ == "__main__":
    README.write_text(written(README.read_text()))
