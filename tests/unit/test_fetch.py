"""The download that is checked before it takes its place, against a server on loopback."""

import hashlib
import http.server
import subprocess
import sys

import pytest

from tests.loopback import serving, url

BODY = b"#!/bin/sh\n"
GOOD = hashlib.sha256(BODY).hexdigest()
OTHER = "0" * 64
# Path -> status, body, and the length that is announced.
ANSWERS = {
    "/file": (200, BODY, len(BODY)),
    "/file.sha256": (200, f"{GOOD} *somewhere/file\n".encode(), None),
    "/replaced": (200, BODY, len(BODY)),
    "/replaced.sha256": (200, f"{OTHER} *replaced\n".encode(), None),
    "/empty": (200, BODY, len(BODY)),
    "/empty.sha256": (200, b"", None),
    "/cut": (200, BODY, len(BODY) + 1),
    "/busy": (503, b"", None),
}


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body, announced = ANSWERS.get(self.path, (404, b"", None))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if announced is None else announced))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def upstream():
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)) as server:
        yield url(server)


def fetch(url, destination, sha256, *flags):
    program = [sys.executable, "files/actions/fetch.py"]
    arguments = [url, str(destination), sha256, "--attempts=1", *flags]
    return subprocess.run([*program, *arguments], capture_output=True, text=True)


GOOD_FETCHES = {"pinned": (GOOD, []), "published": ("-", ["--published"])}
GOOD_FETCHES["both, and the pin in capitals"] = (GOOD.upper(), ["--published"])


@pytest.mark.parametrize(("sha256", "flags"), GOOD_FETCHES.values(), ids=GOOD_FETCHES)
def test_a_good_file_takes_its_place(upstream, tmp_path, sha256, flags):
    target = tmp_path / "new folder" / "file"
    done = fetch(f"{upstream}/file", target, sha256, *flags)
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]


BAD_FETCHES = {
    "another file than pinned": ("/file", OTHER, [], "the pin says 000"),
    "another file than published": (
        "/replaced",
        GOOD,
        ["--published"],
        "the checksum published beside it says 000",
    ),
    "an empty checksum": ("/empty", "-", ["--published"], "beside it says nothing"),
    "no checksum beside it": ("/cut.sha256", "-", [], "HTTP 404"),
    "cut short": ("/cut", GOOD, [], "IncompleteRead(10 bytes read, 1 more expected)"),
    "upstream out of order": ("/busy", GOOD, [], "HTTP 503"),
}


@pytest.mark.parametrize(("path", "sha256", "flags", "said"), BAD_FETCHES.values(), ids=BAD_FETCHES)
def test_a_bad_file_leaves_what_was_there(upstream, tmp_path, path, sha256, flags, said):
    target = tmp_path / "file"
    target.write_text("before")
    done = fetch(f"{upstream}{path}", target, sha256, *flags)
    assert done.returncode != 0
    assert said in done.stderr
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_an_upstream_that_is_not_there_is_named(tmp_path):
    done = fetch("http://127.0.0.1:9/file", tmp_path / "file", GOOD)
    assert "cannot download http://127.0.0.1:9/file" in done.stderr
