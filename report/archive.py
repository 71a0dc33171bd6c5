"""The runs kept on this machine: `<host>-<run id>.json`, and the page beside each."""

import re
from pathlib import Path

from report.assemble import run_of
from report.compare import NotComparable, check_methods
from report.page import page
from report.schema import NotARun, Run, dumps, parse_measurement, read


def place(directory: Path, host: str, run_id: str) -> Path:
    """Return where a host's run is kept; host names of connectors hold `@` and `/`."""
    return directory / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', host).strip('_')}-{run_id}.json"


def keep(directory: Path, host: str, measurement: str) -> Path:
    """Keep a harness's run.json as a validated run with its page; return the JSON's place.

    Raises NotARun where it is none; then nothing is kept.
    """
    run = run_of(parse_measurement(measurement, f"the measurement of {host}"))
    path = place(directory, host, run.id)
    directory.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps(run))
    write_page(path)
    return path


def write_page(path: Path) -> Path:
    """Write the page of a kept run beside it, held against the run before; return its place."""
    run = read(path)
    beside = path.with_suffix(".html")
    beside.write_text(page(run, last_before(path, run)))
    return beside


def last_before(path: Path, run: Run) -> Run | None:
    """Return the newest earlier run of the same host and method, or None."""
    earlier = []
    for other in path.parent.glob("*.json"):
        try:
            found = read(other)
            check_methods([run, found])
        except (NotARun, NotComparable):
            continue
        if found.host == run.host and found.started < run.started:
            earlier.append(found)
    return max(earlier, key=lambda found: found.started, default=None)
