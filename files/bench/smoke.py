"""The smoke check of one host: memory bandwidth and served text, on record with what it tested.

The record is written whether it passed or not; who reads it looks at `passed` and at `digest`,
which names what was tested.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import throughput
from .chat import Server
from .figures import write_json
from .readiness import Timer, wait_until_ready
from .verdict import bandwidth_complaints, speed_complaints

SCHEMA = "vllm-g5g/smoke/1"
PROGRAMS = Path(__file__).resolve().parents[1]  # where `bench` is a package
PROBE_LIMIT = 600  # seconds; the probe itself takes a few


def run_bandwidth(python: str, device: str) -> dict[str, Any]:
    """Return the bandwidth probe's report, or one that says why there is none."""
    command = [python, "-B", "-m", "bench.bandwidth", "--device", device]
    try:
        ended = subprocess.run(
            command, cwd=PROGRAMS, capture_output=True, text=True, timeout=PROBE_LIMIT, check=False
        )
        report: dict[str, Any] = json.loads(ended.stdout)
        return report
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": f"{error}"}
    except ValueError:
        return {"error": f"exit status {ended.returncode}: {(ended.stderr or ended.stdout)[-500:]}"}


def check(options: argparse.Namespace, server: Server) -> dict[str, Any]:
    """Run both probes and return the record. The server is waited for, then asked."""
    memory = run_bandwidth(options.torch_python, options.device)
    complaints = bandwidth_complaints(memory, options.least_gb_per_s)
    ready = wait_until_ready(server, options.health, options.wait, None, Timer())
    served = None
    if ready.get("complaint"):
        complaints.append(ready["complaint"])
    else:
        served = throughput.measure(server, throughput.trial_of(options))
        complaints += speed_complaints(served, options.least_tokens_per_s)
    return {
        "schema": SCHEMA,
        "digest": options.digest,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "passed": not complaints,
        "complaints": complaints,
        "bandwidth": memory,
        "throughput": served,
    }


def summary(record: dict[str, Any]) -> str:
    """Return the record in a line or two, for the log of the run."""
    figures = record["bandwidth"].get("figures")
    parts = []
    if figures:
        share = figures["read"]["share_of_peak"]
        parts.append(
            f"memory reads at {figures['read']['median']:.1f} GB/s"
            + (f", {share:.1%} of its peak" if share else "")
        )
    for run in (record["throughput"] or {}).get("runs", []):
        if speed := run["decode_tokens_per_s"]:
            parts.append(f"{run['tokens_asked']} tokens decode at {speed['median']:.2f} tokens/s")
    return "; ".join(parts) or "nothing could be measured"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    throughput.add_arguments(parser)
    parser.add_argument("--digest", required=True, help="names what is tested; kept in the record")
    parser.add_argument("--record", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--torch-python", required=True, help="an interpreter that has torch")
    parser.add_argument("--device", default="auto", help="for the bandwidth probe")
    parser.add_argument("--least-gb-per-s", type=float, help="of memory reads")
    parser.add_argument("--least-tokens-per-s", type=float, help="of single-stream decode")
    parser.add_argument("--health", default="/health")
    parser.add_argument("--wait", type=float, default=1800.0, help="seconds to wait for the server")


def main(options: argparse.Namespace) -> int:
    """Check and record; the last lines on stderr say what failed, with text or figures."""
    record = check(options, throughput.server_of(options))
    write_json(options.record, record)
    print(summary(record))
    for complaint in record["complaints"]:
        print(f"smoke: {complaint}", file=sys.stderr)
    return 0 if record["passed"] else 1
