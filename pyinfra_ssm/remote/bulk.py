"""A large file out of the host, through a session of its own whose output is not slowed down.

Such a session loses output silently when its socket drops (recorded), so what is printed ends in a
line with its size and digest; no such line means that it has to be fetched again.
"""

from __future__ import annotations

import base64
import json
import os
import sys

from pyinfra_ssm.remote.files import Outgoing, describe_failure
from pyinfra_ssm.remote.framing import Frame, Kind, armour
from pyinfra_ssm.remote.surroundings import settle


def main(argument: str) -> None:
    """Print the file; `argument` is base64 of JSON with path and user."""
    settle()
    try:
        outgoing = Outgoing(json.loads(base64.b64decode(argument)))
        for data in iter(outgoing.read, b""):
            _print(Frame(Kind.CONTENT, 0, data))
    except (OSError, KeyError) as error:
        _print(Frame(Kind.FAILED, 0, json.dumps(describe_failure(error)).encode()))
        sys.exit(1)
    _print(Frame(Kind.CONTENT_END, 0, json.dumps(outgoing.ending()).encode()))


def _print(frame: Frame) -> None:
    view = memoryview(armour(frame, level=1))
    while view:
        view = view[os.write(1, view) :]
