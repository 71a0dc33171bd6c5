#!/usr/bin/python3
"""Stop units in good order once EC2 says that it takes this spot instance back.

Run every five seconds by vllm-spot.timer. EC2 gives two minutes' notice, best effort; a stopping
server finishes the requests it has (`drain_seconds`) and takes no new ones. Standard library
alone. Off EC2, on demand, and without a notice, it does nothing and says nothing.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping

METADATA = "http://169.254.169.254"
PATIENCE_S = 2  # the metadata service answers within milliseconds, or not at all
# systemd's prefix for the priority of a line: shown although the unit logs notices and up alone.
NOTICE, ERROR = "<5>", "<3>"


def metadata(path: str, headers: Mapping[str, str], method: str = "GET") -> str:
    """Return what the metadata service says at `path`; OSError where there is none."""
    base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA).rstrip("/")
    request = urllib.request.Request(f"{base}/latest/{path}", headers=dict(headers), method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE_S) as response:
        return str(response.read().decode())


def notice() -> str:
    """Return EC2's notice as it stands, JSON with "action" and "time"; empty without one.

    OSError where the metadata service is absent, switched off (403) or unwell.
    """
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = metadata("api/token", lifetime, method="PUT")
    try:
        header = {"X-aws-ec2-metadata-token": token}
        return metadata("meta-data/spot/instance-action", header).strip()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return ""
        raise


def describe(text: str) -> str:
    """Return the notice in words; one that cannot be read is still a notice."""
    try:
        told = json.loads(text)
        return f"{told['action']} at {told['time']}"
    except (ValueError, KeyError, TypeError):
        return repr(text[:200])


def heeded(record: str, text: str) -> bool:
    """Return whether this very notice was acted on before."""
    try:
        with open(record) as file:
            return file.read() == text
    except OSError:
        return False


def stop(units: list[str]) -> int:
    """Stop the units, which waits until they are drained; return systemctl's exit status."""
    start = time.monotonic()
    status = subprocess.run(["systemctl", "stop", "--", *units], check=False).returncode
    took = time.monotonic() - start
    if status:
        print(f"{ERROR}systemctl stop {' '.join(units)} failed with {status}", file=sys.stderr)
    else:
        print(f"{NOTICE}{' '.join(units)} drained and stopped within {took:.0f} s")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", required=True, help="file that remembers the notice heeded")
    parser.add_argument("units", nargs="+", help="systemd units to stop")
    options = parser.parse_args()
    try:
        text = notice()
    except OSError:
        return 0  # asked again in five seconds; a failed unit would make the host "degraded"
    if not text or heeded(options.record, text):
        return 0
    print(f"{NOTICE}EC2 takes this spot instance back: {describe(text)}", flush=True)
    if status := stop(options.units):
        return status
    with open(options.record, "w") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
