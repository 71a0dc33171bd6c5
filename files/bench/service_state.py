"""Print how the service is, as JSON: its unit, what its process was started from, its answer.

The fact sends this module alone, so it imports nothing of ours. It asks for a chat completion:
/health is 200 with a dead engine behind it.
"""

import argparse
import glob
import hashlib
import http.client
import json
import os
import re
import subprocess
import time
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

PROPERTIES = (
    *("LoadState", "ActiveState", "SubState", "UnitFileState", "NeedDaemonReload", "MainPID"),
    *("NRestarts", "Result", "ExecMainStatus", "InvocationID", "ActiveEnterTimestampMonotonic"),
    "Job",
)
UNIT_DIRECTORIES = ("/etc/systemd/system", "/etc/systemd/system.control", "/run/systemd/system")
ANSWER_SECONDS = 20


def unit_state(unit: str) -> dict[str, str]:
    """Return systemd's view of a unit; LoadState is not-found where it knows none."""
    shown = subprocess.run(
        ["systemctl", "show", "--property", ",".join(PROPERTIES), unit],
        capture_output=True,
        text=True,
        check=False,
    )
    pairs = (line.partition("=") for line in shown.stdout.splitlines())
    return {"LoadState": "not-found"} | {name: value for name, _, value in pairs}


def drop_ins(unit: str) -> dict[str, str]:
    """Return path and text of each drop-in for this unit, loaded or not, but for vendors' own."""
    paths = [path for root in UNIT_DIRECTORIES for path in glob.glob(f"{root}/{unit}.d/*.conf")]
    found = {}
    for path in sorted(paths):
        try:
            with open(path, errors="replace") as file:
                found[path] = file.read()
        except OSError:
            found[path] = ""
    return found


def process(pid: int, variables: Collection[str]) -> dict[str, Any]:
    """Return arguments and the given variables of a process; others may be secrets."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")[:-1]
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {"argv": [], "environment": {}}
    named = (pair.partition("=") for pair in pairs)
    shown = {name: value for name, _, value in named if name in variables}
    return {"argv": words, "environment": shown}


def version(path: str) -> str:
    """Return what changes whenever the file is written or replaced; "" where there is none.

    No clock is compared with it, so a host whose clock jumped is judged rightly too.
    """
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_ino}.{status.st_mtime_ns}.{status.st_size}"


def digest(path: str) -> str:
    """Return the SHA-256 of a file; "" where there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def read_record(path: str) -> dict[str, dict[str, str]] | None:
    """Return what the running process was started from, as check_start.py wrote it."""
    try:
        with open(path) as file:
            record = json.load(file)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def api_key(path: str | None) -> str | None:
    """Return the key from a file with a line VLLM_API_KEY=..., None where no file is wanted."""
    if not path or not os.path.exists(path):
        return None
    with open(path) as file:
        found = re.search(r"^VLLM_API_KEY=(\S+)$", file.read(), re.MULTILINE)
    return found.group(1) if found else None


def key_generation(path: str | None) -> int | None:
    """Return the number that rotates the key, from the file's comment; None without a key."""
    if api_key(path) is None or not path:
        return None
    with open(path) as file:
        found = re.search(r"^# generation (\d+)$", file.read(), re.MULTILINE)
    return int(found.group(1)) if found else None


def chat(options: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Return body and headers of the request that asks one question."""
    body = {
        "model": options.model,
        "messages": [{"role": "user", "content": options.question}],
        "max_tokens": options.max_tokens,
        "temperature": 0,
    }
    headers = {"Content-Type": "application/json"}
    key = api_key(options.api_key_file)
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return json.dumps(body), headers


def ask(options: argparse.Namespace, timeout: float) -> dict[str, Any]:
    """Ask one question; return `status` (0: no answer at all), `text` and `error`."""
    parts = urlsplit(options.url)
    server = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    try:
        server.request("POST", f"{parts.path}/v1/chat/completions", *chat(options))
        response = server.getresponse()
        said = response.read()
        if response.status != 200:
            error = said[:400].decode(errors="replace")
            return {"status": response.status, "text": "", "error": error}
        text = json.loads(said)["choices"][0]["message"]["content"] or ""
        return {"status": 200, "text": text, "error": ""}
    except TimeoutError:
        return {"status": 0, "text": "", "error": "timed out"}
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError) as error:
        return {"status": 0, "text": "", "error": f"{error}"}
    finally:
        server.close()


def state(options: argparse.Namespace) -> dict[str, Any]:
    """Return all that the comparison with the wanted state needs."""
    unit = unit_state(options.unit)
    pid = int(unit.get("MainPID") or 0)
    started = int(unit.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    active = unit.get("ActiveState") == "active"
    return {
        "unit": unit,
        "drop_ins": drop_ins(options.unit),
        "process": process(pid, options.variables) if pid else {"argv": [], "environment": {}},
        "record": read_record(options.record),
        "versions": {path: version(path) for path in options.watch},
        "unit_sha256": digest(options.unit_file),
        "key_generation": key_generation(options.api_key_file),
        "age": time.monotonic() - started if active else 0.0,
        "answer": ask(options, timeout=ANSWER_SECONDS) if active else None,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what it takes to ask a service; the key comes by file, never as an argument."""
    parser.add_argument("--unit", default="vllm.service")
    parser.add_argument("--url", required=True, help="as http://127.0.0.1:8000")
    parser.add_argument("--model", required=True, help="the name that the model is served under")
    parser.add_argument("--api-key-file", help="file with a line VLLM_API_KEY=...")
    parser.add_argument("--question", required=True)
    parser.add_argument("--max-tokens", type=int, default=32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--unit-file", default="/etc/systemd/system/vllm.service")
    parser.add_argument("--record", default="/run/vllm/started.json")
    parser.add_argument("--watch", nargs="*", default=[], help="files that the server serves from")
    parser.add_argument("--variables", nargs="*", default=[], help="of the process, to be shown")
    print(json.dumps(state(parser.parse_args())))


if __name__ == "__main__":
    main()
