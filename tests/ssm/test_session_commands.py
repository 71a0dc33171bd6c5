"""Commands over a session, against the emulated agent; each case is one that has broken a tool."""

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from pyinfra_ssm._errors import SessionEnded, SSMError
from pyinfra_ssm._transport import Ending, Request, Stream
from pyinfra_ssm.remote.framing import Frame, Kind, armour
from tests.ssm.conftest import Host, Start, account

OUTPUTS = {
    "without a trailing newline": ("printf abc", b"abc"),
    "nothing": ("true", b""),
    "quotes, dollars and backslashes": (
        "printf '%s' '\"$HOME\" `x` \\n $(id)'",
        b'"$HOME" `x` \\n $(id)',
    ),
    "several lines of command": ("echo one\necho two", b"one\ntwo\n"),
    "a here-document": ("cat <<'EOF'\n$HOME \"'\nEOF\n", b"$HOME \"'\n"),
    "emoji and combining characters": (
        "printf 'cafe\u0301 \U0001f680'",
        "cafe\u0301 \U0001f680".encode(),
    ),
    "the replacement character itself": ("printf 'A\\357\\277\\275B'", b"A\xef\xbf\xbdB"),
    "Latin-1 bytes at the very end": ("printf 'tail\\377\\376'", b"tail\xff\xfe"),
    "NUL bytes": ("printf 'a\\000b'", b"a\0b"),
    "all bytes": (
        'i=0; while [ $i -lt 256 ]; do printf "\\\\$(printf %03o $i)"; i=$((i+1)); done',
        bytes(range(256)),
    ),
    "carriage returns": ("printf 'a\\r\\nb\\r'", b"a\r\nb\r"),
    "bracketed paste": ("printf '\\033[?2004h$ '", b"\x1b[?2004h$ "),
    "what looks like our framing": (
        "printf '\\036%s\\n' QUJD",
        b"\x1eQUJD\n",
    ),
}


def is_running(pid: str) -> bool:
    """Whether a process is there, and not merely waits for its parent to take note of its end."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(("command", "output"), OUTPUTS.values(), ids=OUTPUTS)
def test_output_comes_as_it_was_written(host: Host, command: str, output: Any) -> None:
    assert host.run(command) == (Ending(0), output, b"")


def test_a_forged_frame_in_the_output_is_output(host: Host) -> None:
    forged = armour(Frame(Kind.EXITED, 1, b'{"status":0}'))
    ending, stdout, _ = host.run("cat; exit 4", stdin=forged)
    assert (ending.status, stdout) == (4, forged)


def test_the_exit_status_is_that_of_the_command(host: Host) -> None:
    assert host.run("exit 3")[0] == Ending(3)


def test_a_command_that_kills_itself_is_told_by_its_signal(host: Host) -> None:
    ending = host.run("kill -KILL $$")[0]
    assert ending == Ending(signal=signal.SIGKILL)
    assert ending.code == 137


def test_the_two_streams_stay_apart(host: Host) -> None:
    command = "for i in 1 2 3; do echo out$i; echo err$i >&2; done"
    assert host.run(command) == (Ending(0), b"out1\nout2\nout3\n", b"err1\nerr2\nerr3\n")


def test_a_command_without_input_reads_end_of_file(host: Host) -> None:
    assert host.run("cat; echo done")[1] == b"done\n"


def test_a_command_reads_what_it_is_given(host: Host) -> None:
    data = bytes(range(256)) * 1000
    ending, stdout, _ = host.run("sha256sum; wc -c", stdin=data)
    assert ending == Ending(0)
    assert len(stdout.split()) == 3
    assert host.run("wc -c", stdin=data)[1].split() == [b"256000"]


def test_a_command_that_does_not_read_its_input_ends_all_the_same(host: Host) -> None:
    assert host.run("echo no", stdin=b"x" * 1_000_000)[1] == b"no\n"


def test_ten_megabytes_of_output_arrive(host: Host) -> None:
    ending, stdout, _ = host.run("yes 'ten megabytes of output' | head -c 10000000")
    assert ending == Ending(0)
    assert stdout == (b"ten megabytes of output\n" * 500_000)[:10_000_000]


def test_one_line_of_two_hundred_thousand_characters(host: Host) -> None:
    assert host.run("head -c 200000 /dev/zero | tr '\\0' x")[1] == b"x" * 200_000


@pytest.mark.parametrize("length", [50_000, 131_072, 400_000, 3_000_000])
def test_a_long_command(host: Host, length: int) -> None:
    text = "y" * length
    assert host.run(f"sh -c 'printf %s {text} | wc -c'")[1].split() == [b"%d" % length]


def test_a_child_in_the_background_is_not_waited_for_and_lives_on(
    host: Host, tmp_path: Path
) -> None:
    gate, proof = tmp_path / "gate", tmp_path / "proof"
    host.run(f"mkfifo {gate}")
    ending, stdout, _ = host.run(f"(cat {gate}; echo alive; echo alive >{proof}) & echo started")
    assert (ending, stdout) == (Ending(0), b"started\n")
    host.run(f"echo go >{gate}; while [ ! -s {proof} ]; do :; done")
    assert proof.read_text() == "alive\n"


def test_a_deadline_ends_the_command_and_all_that_it_started(host: Host, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = (
        f"trap '' TERM; sh -c 'echo $$ >>{pids}; exec sleep 1000' & "
        f"setsid sh -c 'echo $$ >>{pids}; exec sleep 1000' & "
        f"echo $$ >>{pids}; echo begun; wait; wait"
    )
    ending, stdout, _ = host.run(command, timeout=1.0)
    assert ending.timed_out
    assert stdout == b"begun\n"
    started = pids.read_text().split()
    assert len(started) == 3
    assert [pid for pid in started if is_running(pid)] == []


def test_a_command_on_a_terminal_sees_one(host: Host) -> None:
    ending, stdout, stderr = host.run("test -t 0 -a -t 1 -a -t 2 && echo yes", terminal=True)
    assert (ending, stdout, stderr) == (Ending(0), b"yes\r\n", b"")
    assert host.run("test -t 1 || echo no")[1] == b"no\n"


def test_a_command_on_a_terminal_reads_its_input_to_the_end(host: Host) -> None:
    ending, stdout, _ = host.run("stty -echo; cat", stdin=b"typed\n", terminal=True)
    assert ending == Ending(0)
    assert b"typed\r\n" in stdout


def test_what_cannot_be_started_is_an_error_of_that_command_alone(host: Host) -> None:
    assert host.run("/no/such/program")[0] == Ending(127)
    assert host.run("echo still here")[1] == b"still here\n"


UNSENDABLE = {
    "half a character": ("echo \ud800", "surrogates not allowed"),
    "a NUL byte": ("echo \0", "null byte"),
    "more than Linux takes": (
        ": " + random.Random(1).randbytes(3_000_000).hex(),
        "at most 4194304",
    ),
}


@pytest.mark.parametrize(("command", "said"), UNSENDABLE.values(), ids=UNSENDABLE)
def test_what_cannot_be_sent_says_why_and_ends_nothing_else(
    host: Host, command: str, said: str
) -> None:
    with pytest.raises(SSMError, match=said):
        host.run(command)
    assert host.run("echo still here")[1] == b"still here\n"


def test_a_session_that_is_ended_from_outside_fails_its_command_and_says_what_that_means(
    start: Start, tmp_path: Path
) -> None:
    host = start()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    running = host.transport.begin(Request(f"echo >{fifo}; sleep 1000"))
    fifo.read_text()
    account().terminate_session(host.emulator.sessions[0]["session_id"])
    with pytest.raises(SessionEnded, match=r"while the command ran.*may have been done"):
        running.finish(lambda *_: None)
    assert host.run("echo again")[1] == b"again\n"


def test_nothing_of_sudo_is_left_in_the_environment(host: Host) -> None:
    assert b"SUDO_" not in host.run("env")[1]


def test_output_comes_while_the_command_runs(host: Host, tmp_path: Path) -> None:
    gate, pieces = tmp_path / "gate", []
    os.mkfifo(gate)

    def take(_: Stream, data: bytes) -> None:
        pieces.append(data)
        if len(pieces) == 1:
            gate.write_text("go on\n")  # the command waits for it

    request = Request(f"echo first; cat {gate}")
    assert host.transport.run(request, take) == Ending(0)
    assert b"".join(pieces) == b"first\ngo on\n"


def test_several_commands_run_at_once(host: Host, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    host.run(f"mkfifo {gate}")
    output: list[bytes] = []
    reader = host.transport.begin(Request(f"cat {gate}"))
    writer = host.transport.begin(Request(f"echo met >{gate}"))
    assert writer.finish(lambda *_: None) == Ending(0)
    assert reader.finish(lambda _, data: output.append(data)) == Ending(0)
    assert output == [b"met\n"]
