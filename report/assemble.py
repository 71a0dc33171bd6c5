"""A run's document, out of what the harness left on the host and what the controller knows."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from report.schema import Bandwidth, Ceiling, NotARun, Run

MEASUREMENT = "vllm-g5g/measurement/1"


def run_of(measurement: Mapping[str, Any]) -> Run:
    """Return the document of a harness's run.json. Raises NotARun, naming what does not fit."""
    if measurement.get("schema") != MEASUREMENT:
        raise NotARun(f"not a {MEASUREMENT} document: schema is {measurement.get('schema')!r}")
    try:
        return _run(measurement)
    except (KeyError, TypeError, ValidationError) as error:
        raise NotARun(f"measurement {measurement.get('id')}: {error}") from error


def _run(found: Mapping[str, Any]) -> Run:
    about, attached = found["about"], found["attached"]
    smoke = attached.get("smoke")
    bandwidth = _bandwidth(smoke)
    ceiling = _ceiling(bandwidth, about.get("streamed_bytes_per_token"))
    return Run.model_validate(
        {
            "id": found["id"],
            "host": about.get("host") or found["machine"]["hostname"],
            "started": found["started"],
            "ended": found["ended"],
            "runtime": about.get("runtime", "unknown"),
            "model": found["server"]["model"],
            "hardware": {**found["machine"], "profile": about.get("profile")},
            "software": {**about.get("software", {}), "build": attached.get("build")},
            "method": found["method"],
            "cells": found["cells"],
            "bandwidth": bandwidth,
            "ceiling": ceiling,
            "smoke": smoke,
            "readiness": attached.get("readiness"),
            "notes": _notes(found),
            "evidence": _evidence(found, bandwidth, ceiling, about),
        }
    )


def _bandwidth(smoke: Mapping[str, Any] | None) -> Bandwidth | None:
    report = (smoke or {}).get("bandwidth") or {}
    figures = report.get("figures")
    if not figures:
        return None
    kept = ("median", "min", "max", "mean", "stdev", "spread", "n")
    spreads = {name: {key: f.get(key) for key in kept} for name, f in figures.items()}
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


def _notes(found: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know before believing a figure."""
    nonce = found["method"]["nonce"]
    notes = [
        "Every prompt began with a nonce: no prefix cache helped."
        if nonce
        else "Prompts were repeated: a prefix cache may have answered part of each."
    ]
    rates = [cell.get("prefix_hit_rate") for cell in found["cells"]]
    known = [rate for rate in rates if rate is not None]
    if known:
        notes.append(
            f"Prefix cache hit rate by the server's own counters: at most {max(known):.1%}."
        )
    counted = {r["tokens_from"] for cell in found["cells"] for r in cell["requests"]}
    if "chunks" in counted:
        notes.append("The server gave no usage: tokens are counted by chunks of the stream.")
    return notes


def _evidence(
    found: Mapping[str, Any],
    bandwidth: Bandwidth | None,
    ceiling: Ceiling | None,
    about: Mapping[str, Any],
) -> dict[str, str]:
    machine = found["machine"]
    gpu = machine["gpus"][0]["name"] if machine["gpus"] else machine["cpu"]
    where = f"measured on {machine['product'] or machine['hostname']} ({gpu})"
    marks = {"cells": f"{where}, {found['started'][:10]}, on the host over loopback"}
    if bandwidth:
        marks["bandwidth"] = f"{where}, with the smoke check of {found['attached']['smoke']['at']}"
    if ceiling:
        streamed = about.get("streamed_bytes_evidence", "untested")
        marks["ceiling"] = f"measured read bandwidth over streamed bytes ({streamed})"
    return marks
