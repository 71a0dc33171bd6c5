"""A signal ends the program by its main greenlet, whichever runs when it comes."""

import signal
import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys
import gevent, gevent.event
from pyinfra_ssm import _leaving

class Open:
    def abandon(self): print("abandoned", flush=True)
    def close(self): print("closed", flush=True)

def work():
    os.kill(os.getpid(), int(sys.argv[1]))
    print("not interrupted", flush=True)

signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # as pyinfra's own, with another status
held = Open()
_leaving.register(held)
gevent.spawn(work)
for_ever = gevent.event.Event()
gevent.spawn(for_ever.wait, 60)
for_ever.wait()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_greenlet_is_not_torn_out_of_what_it_does(number: signal.Signals) -> None:
    command = ["env", "--default-signal", sys.executable, "-c", SCRIPT, str(int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 128 + number, ended.stderr
    assert ended.stdout.split("\n") == ["abandoned", "not interrupted", "closed", ""]
