"""A run, or several side by side, as Markdown for a README."""

from collections.abc import Iterable, Sequence

from report.compare import Change, figures
from report.schema import Run
from report.wording import COLUMNS, NONE, headline, number, row, varies


def table(run: Run) -> str:
    """Return the cells of a run as a table, with the run and its evidence above."""
    head = f"{run.model} with {run.runtime} on {run.host}, {run.started[:10]} (run `{run.id}`)."
    lines = [head, "", *_table(COLUMNS, (row(cell) for cell in run.cells)), ""]
    lines += [f"- {figure} {unit}: {what}" for figure, unit, what in headline(run)]
    lines += [f"- {section}: {mark}" for section, mark in run.evidence.items()]
    return "\n".join(lines) + "\n"


def side_by_side(runs: Sequence[Run], warning: str | None) -> str:
    """Return the figures of every run in columns; a star marks what differs beyond the spread.

    The first run is what the others are held against.
    """
    found = [figures(run) for run in runs]
    names = list(dict.fromkeys(name for figure in found for name in figure))
    rows = []
    for name in names:
        first = found[0].get(name)
        cells = [name, f"{number(first.median)} (varies {varies(first)})" if first else NONE]
        for other in found[1:]:
            after = other.get(name)
            if first is None or after is None:
                cells.append(number(after.median) if after else NONE)
            else:
                cells.append(_against(Change(name, first, after)))
        rows.append(cells)
    columns = ["figure", *(f"{run.host} `{run.id}`" for run in runs)]
    note = "\\* differs by more than the measured spread."
    return "\n".join(
        [*([f"**{warning}**", ""] if warning else []), *_table(columns, rows), "", note]
    )


def _against(change: Change) -> str:
    star = " \\*" if change.real else ""
    return f"{number(change.after.median)} ({(change.ratio - 1):+.1%}){star}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return (
            "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
        )

    return [line(columns), line(["---"] * len(columns)), *(line(row) for row in rows)]
