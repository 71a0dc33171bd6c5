"""How this machine reaches its package registries, in a form that a container can use.

A registry mirror, a proxy, a private certificate authority or a folder of wheels is set up on a
machine once, for pip and apt. The container must use the same, whatever they are: nothing here
knows any of their names.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

CERTIFICATES = Path("/etc/ssl/certs")
PIP_CACHE = "/var/cache/pip"  # in the container; this machine's .cache/pip is mounted there

# Options of pip that say where packages come from; the rest of a user's settings is theirs.
_PIP_INDEXES = ("index-url", "extra-index-url")
_PIP_PATHS = (*_PIP_INDEXES, "find-links", "constraint", "cert", "client-cert")
_PIP_OPTIONS = (
    *(*_PIP_PATHS, "no-index", "trusted-host", "proxy", "timeout", "default-timeout"),
    *("retries", "prefer-binary", "disable-pip-version-check"),
)
_PIP_LINE = re.compile(r"(?P<scope>.+?)\.(?P<option>[a-z-]+)=(?P<value>'.*'|\".*\")", re.DOTALL)
_APT_LINE = re.compile(
    r"Acquire::(https?::[\w.:-]+|Retries|ForceIPv[46]|Check-Date|Check-Valid-Until) \"[^\"]+\";"
)


@dataclass(frozen=True)
class Machine:
    """The registries' set-up: file contents for the container, and what to mount read-only."""

    pip: Mapping[str, str]  # option to value
    apt_conf: str
    apt_sources: tuple[str, ...]
    mounts: tuple[Path, ...]


def read() -> Machine:
    """Ask pip and apt of this machine how they are set up."""
    pip = pip_settings(_output(sys.executable, "-m", "pip", "config", "list"))
    targets = _output(
        "apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages",
    )  # fmt: skip
    folders = [CERTIFICATES.resolve(), *pip_folders(pip)] if CERTIFICATES.exists() else []
    return Machine(
        pip=pip,
        apt_conf=apt_conf(_output("apt-config", "dump", "Acquire"), os.environ),
        apt_sources=apt_sources(targets),
        mounts=tuple(dict.fromkeys(folders)),
    )


def _output(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError:  # not a Debian machine: nothing to hand on
        return ""
    return done.stdout


def pip_settings(listing: str) -> dict[str, str]:
    """Return pip's package sources from `pip config list`; the environment outranks files."""
    found = [match for line in listing.splitlines() if (match := _PIP_LINE.fullmatch(line))]
    found.sort(key=lambda match: match["scope"] == ":env:")
    return {
        match["option"]: str(ast.literal_eval(match["value"]))
        for match in found
        if match["option"] in _PIP_OPTIONS
    }


def pip_folders(settings: Mapping[str, str]) -> list[Path]:
    """Return the local folders and files that pip's settings name, those that exist.

    Of a local index the folder above is meant: its pages link to files beside the index.
    """
    paths = []
    for option in _PIP_PATHS:
        for word in settings.get(option, "").split():
            path = Path(urlsplit(word).path)
            if urlsplit(word).scheme in ("", "file"):
                paths.append(path.parent if option in _PIP_INDEXES else path)
    return [path for path in paths if path.is_absolute() and path.exists() and path.name]


def pip_conf(settings: Mapping[str, str]) -> str:
    """Return a pip.conf with these settings and the shared cache."""
    lines = [f"{option} = {value}" for option, value in sorted(settings.items())]
    return "\n".join(["[global]", f"cache-dir = {PIP_CACHE}", *lines, ""])


def apt_conf(dump: str, environment: Mapping[str, str]) -> str:
    """Return the part of `apt-config dump Acquire` that says how to reach a mirror."""
    lines = [line for line in dump.splitlines() if _APT_LINE.fullmatch(line)]
    for scheme in ("http", "https"):
        proxy = environment.get(f"{scheme}_proxy")
        if proxy and not any(line.startswith(f"Acquire::{scheme}::Proxy ") for line in lines):
            lines.append(f'Acquire::{scheme}::Proxy "{proxy}";')
    return "".join(f"{line}\n" for line in lines)


def apt_sources(targets: str, suite: str = "bookworm") -> tuple[str, ...]:
    """Return source lines for this machine's own Debian mirrors of `suite`; empty: take Debian's.

    `targets` has one index a line: origin, URI, release, component.
    """
    lines = []
    for fields in map(str.split, targets.splitlines()):
        if len(fields) == 4 and fields[0] == "Debian" and fields[2].split("-")[0] == suite:
            lines.append(f"deb {fields[1]} {fields[2]} {fields[3]}")
    return tuple(dict.fromkeys(lines))
