"""One self-contained HTML page of a run: no script, no request, readable on a phone and printed."""

from collections import ChainMap
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from report.change_plot import change_plot
from report.compare import changes
from report.plots import plots
from report.schema import Run
from report.wording import COLUMNS, boot, headline, row

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"


def page(run: Run, last: Run | None = None) -> str:
    """Return the page; `last` is an earlier run of the same method to hold this one against."""
    jinja = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found = changes(last, run) if last else []
    return jinja.get_template("report.html.j2").render(
        run=run,
        headline=headline(run),
        plots=[*plots(run), *([change_plot(found)] if found else [])],
        columns=COLUMNS,
        rows=[(cell.state, row(cell)) for cell in run.cells],
        boot=boot(run),
        last=last,
        facts=_facts(run),
    )


def _facts(run: Run) -> list[tuple[str, str]]:
    """Return what the host and its software are, flat, without what is unknown."""
    machine = run.hardware.model_dump(exclude={"gpus", "memory_bytes"})
    memory = run.hardware.memory_bytes
    gpus = "; ".join(", ".join(gpu.values()) for gpu in run.hardware.gpus)
    software = {key: value for key, value in run.software.items() if key != "build"}
    rows = {
        "profile": run.profile,
        **machine,
        "memory": f"{memory / 2**30:.1f} GiB" if memory else None,
        "gpu": gpus,
        **software,
        **_build_inputs(run.software.get("build")),
    }
    return [(key, str(value)) for key, value in rows.items() if value not in (None, "")]


def _build_inputs(stamp: Any) -> dict[str, Any]:
    halves = stamp.get("inputs", {}) if isinstance(stamp, dict) else {}
    inputs = ChainMap(*(half for half in halves.values() if isinstance(half, dict)))
    return {f"build: {name}": value for name, value in sorted(inputs.items())}
