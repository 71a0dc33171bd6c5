#!/usr/bin/python3
"""Tell how the vLLM service is: `state` once, as JSON; `wait` until it answers, with progress.

Standard library alone. Healthy means that a chat completion came back with sane text: /health is
200 with a dead engine behind it, and a broken endpoint answers with repeated tokens.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection
from typing import Any

PROPERTIES = (
    *("LoadState", "ActiveState", "SubState", "UnitFileState", "NeedDaemonReload", "MainPID"),
    *("NRestarts", "Result", "ExecMainStatus", "InvocationID", "ActiveEnterTimestampMonotonic"),
)
UNIT_DIRECTORIES = ("/etc/systemd/system", "/etc/systemd/system.control", "/run/systemd/system")
EXIT_DIED, EXIT_LATE, EXIT_NONSENSE = 1, 2, 3
LOG_PREFIX = re.compile(r"^(\(\w[^)]* pid=\d+\) )?(?:[A-Z]+ [\d-]+ [\d:]+ )?(\[\w+\.py:\d+\] )?")
POLL_SECONDS = 1.0
PROGRESS_SECONDS = 5.0
FIRST_ANSWER_SECONDS = 300  # the first request compiles kernels


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


def ask(options: argparse.Namespace, timeout: float) -> dict[str, Any]:
    """Ask one question; return `status` (0: no answer at all), `text` and `error`."""
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
    url = f"{options.url}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as response:
            answer = json.load(response)
        text = answer["choices"][0]["message"]["content"] or ""
        return {"status": 200, "text": text, "error": ""}
    except urllib.error.HTTPError as error:
        said = error.read(400).decode(errors="replace")
        return {"status": error.code, "text": "", "error": said}
    except TimeoutError:
        return {"status": 0, "text": "", "error": "timed out"}
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        return {"status": 0, "text": "", "error": f"{error}"}


def nonsense(text: str) -> str:
    """Return what is wrong with an answer; "" for text that a working model may have said.

    One word is sane, so is an answer cut short. What is not: nothing, undecodable bytes, and one
    group of characters over and over (": ok: ok: ok"), which is what a broken endpoint gives.
    """
    stripped = text.strip()
    if not stripped:
        return "the answer is empty"
    if stripped.count("\N{REPLACEMENT CHARACTER}") * 10 > len(stripped):
        return "the answer is not text"
    repeated = re.search(r"(.{1,24}?)\1{3,}", stripped, re.DOTALL)
    if repeated and len(stripped) >= 8 and len(repeated.group()) * 2 >= len(stripped):
        return f"the answer repeats {repeated.group(1)!r}"
    words = re.findall(r"\w+", stripped.lower())
    if len(words) >= 12 and len(set(words)) * 4 <= len(words):
        return f"the answer has {len(set(words))} different words in {len(words)}"
    return ""


def state(options: argparse.Namespace) -> int:
    """Print all that the comparison with the wanted state needs, in one go."""
    unit = unit_state(options.unit)
    pid = int(unit.get("MainPID") or 0)
    started = int(unit.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    active = unit.get("ActiveState") == "active"
    found = {
        "unit": unit,
        "drop_ins": drop_ins(options.unit),
        "process": process(pid, options.variables) if pid else {"argv": [], "environment": {}},
        "record": read_record(options.record),
        "versions": {path: version(path) for path in options.watch},
        "unit_sha256": digest(options.unit_file),
        "key_generation": key_generation(options.api_key_file),
        "age": time.monotonic() - started if active else 0.0,
        "answer": ask(options, timeout=20) if active else None,
    }
    print(json.dumps(found))
    return 0


def wait(
    options: argparse.Namespace,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Wait for a sane answer; return 0, or why there is none as an exit status."""
    before = unit_state(options.unit)
    restarts = int(before.get("NRestarts") or 0)
    if options.restart:
        subprocess.run(["systemctl", "reset-failed", options.unit], check=False)
        if subprocess.run(["systemctl", "restart", "--no-block", options.unit]).returncode:
            return EXIT_DIED
        restarts = 0
    begun = shown = clock()
    while clock() - begun < options.deadline:
        now = unit_state(options.unit)
        # Until the old process is gone it is the old process that answers.
        replaced = not options.restart or now.get("InvocationID") != before.get("InvocationID")
        verdict = look(options, restarts, now) if replaced else None
        if verdict is not None:
            return verdict
        if clock() - shown >= PROGRESS_SECONDS:
            shown = clock()
            say(f"{shown - begun:4.0f} s of {options.deadline}: {activity(options.unit, now)}")
        sleep(POLL_SECONDS)
    say(f"{options.unit} has not answered a chat completion within {options.deadline} s")
    return EXIT_LATE


def look(options: argparse.Namespace, restarts: int, now: dict[str, str]) -> int | None:
    """Return the exit status once the outcome is known, None while it is not.

    `restarts` is how often systemd had restarted the unit before. One death is enough: what kills
    a server at its start is there at the next one too.
    """
    active, sub = now.get("ActiveState"), now.get("SubState")
    again = int(now.get("NRestarts") or 0) > restarts
    if again or sub == "auto-restart" or active in ("failed", "inactive"):
        result, status = now.get("Result"), now.get("ExecMainStatus")
        # What failed before the main process ever ran left that at 0.
        how = f"{result}, exit status {status}" if status != "0" or result == "success" else result
        say(f"{options.unit} died while starting ({how}, invocation {now.get('InvocationID')})")
        return EXIT_DIED
    if active != "active":
        return None
    answer = ask(options, timeout=FIRST_ANSWER_SECONDS)
    if answer["status"] == 200:
        return judge(options, answer["text"])
    if answer["status"] in (0, 429, 503):
        return None
    say(f"{options.url} answered a chat with {answer['status']}: {answer['error']}")
    return EXIT_NONSENSE


def judge(options: argparse.Namespace, text: str) -> int:
    """Say what was answered; return the exit status that it deserves."""
    wrong = nonsense(text)
    if wrong:
        say(f"degenerate text from {options.url}: {wrong}")
        return EXIT_NONSENSE
    say(f"asked {options.question!r}, answered {' '.join(text.split())!r}")
    return 0


def activity(unit: str, now: dict[str, str]) -> str:
    """Return what the unit does right now: its latest journal line."""
    latest = subprocess.run(
        ["journalctl", "--unit", unit, "--lines", "1", "--output", "cat", "--no-pager"],
        capture_output=True,
        text=True,
        check=False,
    )
    line = LOG_PREFIX.sub("", " ".join(latest.stdout.split()))
    return f"{now.get('ActiveState')} ({now.get('SubState')}) {line[:100]}"


def say(line: str) -> None:
    print(line, flush=True)


def arguments() -> argparse.Namespace:
    """Return the command line; the key comes by file, never as an argument."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["state", "wait"])
    parser.add_argument("--unit", default="vllm.service")
    parser.add_argument("--unit-file", default="/etc/systemd/system/vllm.service")
    parser.add_argument("--url", required=True, help="as http://127.0.0.1:8000")
    parser.add_argument("--model", required=True, help="the name that the model is served under")
    parser.add_argument("--api-key-file", help="file with a line VLLM_API_KEY=...")
    parser.add_argument("--question", required=True)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--record", default="/run/vllm/started.json")
    parser.add_argument("--watch", nargs="*", default=[], help="files that the server serves from")
    parser.add_argument("--variables", nargs="*", default=[], help="of the process, to be shown")
    parser.add_argument("--deadline", type=int, default=1800, help="seconds")
    parser.add_argument("--restart", action="store_true", help="restart the unit first")
    return parser.parse_args()


if __name__ == "__main__":
    chosen = arguments()
    sys.exit(state(chosen) if chosen.action == "state" else wait(chosen))
