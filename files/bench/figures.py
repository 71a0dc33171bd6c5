"""Small statistics, and JSON files that are whole or absent."""

import json
import os
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def spread(values: Iterable[float | None]) -> dict[str, Any] | None:
    """Return median, extremes, mean, deviation and count of what is not None; None of nothing.

    `spread` is (max - min) / median: with three repeats a deviation says little.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    median, low, high = statistics.median(known), min(known), max(known)
    return {
        "median": median,
        "min": low,
        "max": high,
        "mean": statistics.fmean(known),
        "stdev": statistics.stdev(known) if len(known) > 1 else None,
        "spread": (high - low) / median if median else None,
        "n": len(known),
    }


def write_json(path: Path, value: Any) -> None:
    """Write beside the place, then rename: who reads, or starts again, finds a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value, indent=1) + "\n")
    new.replace(path)
