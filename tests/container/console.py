"""What `make try` and the fixtures show while they work: stages, live lines and seconds."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

# A watched pipe gets a line this often (seconds); a terminal is redrawn four times a second.
PLAIN_PERIOD = 15.0
TERMINAL_PERIOD = 0.25
TAIL_LINES = 40
_LINE_ENDS = re.compile(rb"[\r\n]+")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class StepFailed(Exception):
    """A step of the set-up failed; the message says what was done, what came out, what to do."""


class Stages:
    """Names each stage as it starts, and remembers how many seconds it took."""

    def __init__(self, *, show: Callable[[str], None] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._show = show or (lambda text: print(text, file=sys.stderr, flush=True))

    @contextmanager
    def stage(self, name: str, what: str) -> Iterator[None]:
        """Time the body as stage `name`, also where it fails or is interrupted."""
        self._show(f"==> {what}")
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - started, 1)


def table(seconds: Mapping[str, float]) -> str:
    """Return names and their seconds, one a line."""
    width = max(map(len, seconds), default=0)
    return "\n".join(f"  {name:<{width}}  {spent:7.1f} s" for name, spent in seconds.items())


@contextmanager
def alive(doing: str) -> Iterator[None]:
    """Keep a live line on standard error while the body works without showing anything itself."""
    done = threading.Event()
    terminal = sys.stderr.isatty()
    started = time.monotonic()

    def draw() -> None:
        while not done.wait(TERMINAL_PERIOD if terminal else PLAIN_PERIOD):
            _draw(f"    {doing}: {time.monotonic() - started:.0f} s", terminal)

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield
    finally:
        done.set()
        drawing.join()
        _draw(f"    {doing}: {time.monotonic() - started:.1f} s", terminal, end="\n")


def run_live(argv: Sequence[str], *, doing: str, log: Path) -> None:
    """Run a command with its output in `log` and one live line on standard error.

    Raises:
        StepFailed: the command is missing or exits non-zero; the end of its output is shown.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError as error:
        raise StepFailed(f"cannot run {argv[0]} ({doing}): it is not installed") from error
    last = _LastLine()
    with process, log.open("ab") as sink:
        assert process.stdout is not None
        reader = threading.Thread(target=last.follow, args=(process.stdout, sink), daemon=True)
        reader.start()
        try:
            _show_until_done(process, doing, last)
        except BaseException:
            process.terminate()
            raise
        reader.join()
    if process.returncode:
        raise StepFailed(_failure(doing, argv, process.returncode, log))


def _failure(doing: str, argv: Sequence[str], code: int, log: Path) -> str:
    tail = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return "\n".join(
        [f"{doing} failed: {' '.join(argv[:6])} ... exited {code}. Its last lines (all: {log}):"]
        + [f"    {line}" for line in tail]
    )


class _LastLine:
    """The newest line of a stream that is copied to a file as it comes."""

    def __init__(self) -> None:
        self.text = ""

    def follow(self, source: IO[bytes], sink: IO[bytes]) -> None:
        read = getattr(source, "read1", source.read)
        while chunk := read(65536):
            sink.write(chunk)
            sink.flush()
            lines = [line for line in _LINE_ENDS.split(chunk) if line.strip()]
            if lines:
                self.text = _ESCAPES.sub("", lines[-1].decode(errors="replace")).strip()


def _show_until_done(process: "subprocess.Popen[bytes]", doing: str, last: _LastLine) -> None:
    terminal = sys.stderr.isatty()
    started = time.monotonic()
    while True:
        try:
            process.wait(timeout=TERMINAL_PERIOD if terminal else PLAIN_PERIOD)
        except subprocess.TimeoutExpired:
            elapsed = time.monotonic() - started
            _draw(f"    {doing}: {elapsed:.0f} s  {last.text}", terminal)
        else:
            _draw(f"    {doing}: done in {time.monotonic() - started:.1f} s", terminal, end="\n")
            return


def _draw(text: str, terminal: bool, end: str = "") -> None:
    if terminal:
        sys.stderr.write(f"\r\x1b[K{text[:110]}{end}")
    else:
        sys.stderr.write(f"{text[:200]}\n")
    sys.stderr.flush()
