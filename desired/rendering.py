"""Render templates/ on this machine, so that a plan can show and compare the text."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"


def rendered(template: str, **values: object) -> str:
    """Return a template of templates/ with its values; a missing value is an error."""
    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return jinja.get_template(template).render(values)
