"""Run a long job in a systemd unit of its own, or attach to it where it runs already; follow it.

A JSON object on standard input:
  unit, description, work (a directory of the job's own), log
  python, program (a name), files (texts by name: the program, and what it finds beside itself),
  input (any JSON value)
  properties: of the unit, by name

The job belongs to systemd, not to the connection: where that drops, the job goes on, and the next
run attaches. Exit status 0 only if the job succeeded.
"""

import json
import os
import re
import subprocess
import sys
import time

SHOW_EVERY = 5.0  # seconds between lines of progress
WIDTH = 120  # characters of a line of progress
NINJA = re.compile(r"^\s*\[(\d+)/(\d+)\]")  # "[12/343] Building CUDA object ..."
AT_WORK = ("active", "activating", "deactivating", "reloading")


def say(text):
    print(text, flush=True)


def state_of(unit):
    names = "ActiveState,Result,ExecMainStatus"
    command = ("systemctl", "show", unit, "--property", names)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def is_running(unit):
    return state_of(unit)["ActiveState"] in AT_WORK


def place(work, name):
    return os.path.join(work, name)


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def start_or_attach(job):
    wanted = json.dumps(job["input"], sort_keys=True)
    if is_running(job["unit"]):
        if read(place(job["work"], "input.json")) != wanted:
            sys.exit(
                f"{job['unit']} is at work on something else. Wait for it, or stop it with "
                f"`systemctl stop {job['unit']}`; then run again."
            )
        say(f"{job['unit']} is at work on the same already, attaching to it")
        return
    os.makedirs(job["work"], exist_ok=True)
    os.makedirs(os.path.dirname(job["log"]), exist_ok=True)
    for name, text in {**job["files"], "input.json": wanted}.items():
        with open(place(job["work"], name), "w") as file:
            file.write(text)
    if os.path.exists(place(job["work"], "done")):
        os.remove(place(job["work"], "done"))
    if os.path.exists(job["log"]):
        os.replace(job["log"], job["log"] + ".1")
    launch(job)


def launch(job):
    properties = {
        "Type": "oneshot",
        "StandardOutput": f"append:{job['log']}",
        "StandardError": f"append:{job['log']}",
        # The only proof of success that outlives the unit; systemd runs it after a success alone.
        "ExecStartPost": f"+/usr/bin/touch {place(job['work'], 'done')}",
        "Nice": "10",
        "TimeoutStopSec": "20",
        **job["properties"],
    }
    subprocess.run(
        ("systemctl", "reset-failed", job["unit"]), stderr=subprocess.DEVNULL, check=False
    )
    options = [f"--property={name}={value}" for name, value in properties.items()]
    options += ["--quiet", "--no-block", f"--unit={job['unit']}"]
    options += [f"--description={job['description']}"]
    paths = (place(job["work"], job["program"]), place(job["work"], "input.json"))
    subprocess.run(("systemd-run", *options, "--", job["python"], "-u", *paths), check=True)


def progress_of(line, seconds):
    counted = NINJA.match(line)
    if not counted:
        return line.strip()[:WIDTH]
    done, total = map(int, counted.groups())
    return f"compiled {done} of {total}, about {seconds / done * (total - done) / 60:.0f} min left"


def new_lines(path, position):
    try:
        with open(path, "rb") as file:
            file.seek(position)
            return [line for line in file if line.endswith(b"\n")]
    except FileNotFoundError:
        return []


def follow(job):
    """Show the newest line of the log now and then, until the unit ends."""
    began = shown_at = time.monotonic()
    position, newest = 0, ""
    ended = False
    while not ended:
        ended = not is_running(job["unit"])  # asked first, so that no last line is missed
        lines = new_lines(job["log"], position)
        position += sum(map(len, lines))
        newest = lines[-1].decode(errors="replace") if lines else newest
        now = time.monotonic()
        if now - shown_at > SHOW_EVERY:
            say(f"{now - began:4.0f} s: {progress_of(newest, now - began)}")
            shown_at = now
        if not ended:
            time.sleep(0.5)


def report(job):
    """Exit 0 if the job succeeded; otherwise say how it ended."""
    if os.path.exists(place(job["work"], "done")):
        return
    state = state_of(job["unit"])
    sys.exit(
        f"{job['description']} failed ({state['Result']}, exit status "
        f"{state['ExecMainStatus']}); its log is {job['log']}"
    )


def main():
    job = json.load(sys.stdin)
    start_or_attach(job)
    follow(job)
    report(job)


main()
