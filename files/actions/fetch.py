"""Download one file, check it, then put it in its place: what lies there is whole or absent.

Arguments: URL, destination, and SHA-256 (hex; "-" where none is pinned). With --published, the
checksum that upstream serves beside the file (URL + ".sha256") must agree as well.
"""

import argparse
import hashlib
import http.client
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request

TIMEOUT = 30  # seconds without a byte


def read(url, attempts):
    """Return the body; network errors and 5xx answers are tried again."""
    for attempt in range(1, attempts + 1):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
                return answer.read()  # raises where the body is shorter than announced
        except urllib.error.HTTPError as error:
            fault, final = f"HTTP {error.code} {error.reason}", error.code < 500
        except (OSError, http.client.HTTPException) as error:
            fault, final = repr(error), False
        if final or attempt == attempts:
            sys.exit(f"cannot download {url}: {fault} (attempt {attempt} of {attempts})")
        time.sleep(2**attempt)
    raise AssertionError("the last attempt returns or exits")


def check(url, body, wanted, source):
    found = hashlib.sha256(body).hexdigest()
    if found != wanted.lower():
        sys.exit(
            f"refused {url}: its SHA-256 is {found}, {source} says {wanted}. "
            "Nothing was installed. Compare with what upstream announces before changing the pin."
        )


def place(body, destination):
    folder = os.path.dirname(destination)
    os.makedirs(folder, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(body)
    os.chmod(name, 0o755)
    os.replace(name, destination)


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("destination")
    parser.add_argument("sha256")
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--attempts", type=int, default=4)
    return parser.parse_args()


def main(options):
    body = read(options.url, options.attempts)
    if options.sha256 != "-":
        check(options.url, body, options.sha256, "the pin")
    if options.published:
        beside = read(f"{options.url}.sha256", options.attempts).decode("ascii", "replace")
        published = (beside.split() or ["nothing"])[0]
        check(options.url, body, published, "the checksum published beside it")
    place(body, options.destination)


if __name__ == "__main__":
    main(parsed())
