"""A run's document, out of what the harness left on the host and what the controller knows."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from report.schema import Bandwidth, Ceiling, Measurement, NotARun, Run

STATISTICS = ("median", "min", "max", "mean", "stdev", "spread", "n")


def run_of(found: Measurement) -> Run:
    """Return the document of a measurement. Raises NotARun where an attached record is none."""
    try:
        return _run(found)
    except (KeyError, TypeError, ValidationError) as error:
        raise NotARun(
            f"measurement {found.id} has a record that cannot be read: {error!r}"
        ) from error


def _run(found: Measurement) -> Run:
    about, smoke = found.about, found.attached.get("smoke")
    bandwidth = _bandwidth(smoke)
    ceiling = _ceiling(bandwidth, about.get("streamed_bytes_per_token"))
    return Run(
        id=found.id,
        host=about.get("host") or found.machine.hostname,
        started=found.started,
        ended=found.ended,
        runtime=about.get("runtime", "unknown"),
        model=found.server["model"],
        profile=about.get("profile"),
        hardware=found.machine,
        software={**about.get("software", {}), "build": found.attached.get("build")},
        method=found.method,
        cells=found.cells,
        bandwidth=bandwidth,
        ceiling=ceiling,
        smoke=smoke,
        readiness=found.attached.get("readiness"),
        notes=tuple(_notes(found)),
        evidence=_evidence(found, bandwidth, ceiling),
    )


def _bandwidth(smoke: Mapping[str, Any] | None) -> Bandwidth | None:
    report = (smoke or {}).get("bandwidth") or {}
    figures = report.get("figures")
    if not figures:
        return None
    spreads = {name: {key: f[key] for key in STATISTICS} for name, f in figures.items()}
    return Bandwidth.model_validate(
        {
            "read": spreads["read"],
            "copied": spreads["copy"],
            "write": spreads["write"],
            "scale": spreads["scale"],
            "peak": report["peak_gb_per_s"],
            "plain_copy": report["plain_copy_gb_per_s"],
            "buffer_bytes": report["method"]["buffer_bytes"],
        }
    )


def _ceiling(bandwidth: Bandwidth | None, streamed: float | None) -> Ceiling | None:
    if bandwidth is None or not streamed:
        return None
    read = bandwidth.read.median
    return Ceiling(
        streamed_bytes_per_token=streamed, read_gb_per_s=read, tokens_per_s=read * 1e9 / streamed
    )


def _notes(found: Measurement) -> list[str]:
    """Return what a reader must know before believing a figure."""
    notes = [
        "Every prompt began with a nonce: no prefix cache helped."
        if found.method.nonce
        else "Prompts were repeated: a prefix cache may have answered part of each."
    ]
    rates = [cell.prefix_hit_rate for cell in found.cells if cell.prefix_hit_rate is not None]
    if rates:
        notes.append(f"The server counts at most {max(rates):.1%} hits in its prefix cache.")
    if "chunks" in {request.tokens_from for cell in found.cells for request in cell.requests}:
        notes.append("The server gave no usage: tokens are counted by chunks of the stream.")
    return notes


def _evidence(
    found: Measurement, bandwidth: Bandwidth | None, ceiling: Ceiling | None
) -> dict[str, str]:
    machine = found.machine
    chip = machine.gpus[0]["name"] if machine.gpus else machine.cpu
    where = f"measured on {machine.product or machine.hostname} ({chip})"
    marks = {"cells": f"{where}, {found.started[:10]}, on the host over loopback"}
    if bandwidth:
        marks["bandwidth"] = f"{where}, with the smoke check of {found.attached['smoke']['at']}"
    if ceiling:
        streamed = found.about.get("streamed_bytes_evidence", "untested")
        marks["ceiling"] = f"measured read bandwidth over streamed bytes ({streamed})"
    return marks
