#!/usr/bin/python3
"""Refuse to start the server where it cannot work, and record what it is started from.

Runs as ExecStartPre= with the server's own user, so what that user cannot read shows here, in one
line, and not in a traceback after a minute of loading.
"""

import argparse
import glob
import hashlib
import json
import os
import socket
import sys


def stamp_problem(path: str) -> str:
    """Return why the build is not known to be good."""
    try:
        with open(path) as file:
            json.load(file)
    except FileNotFoundError:
        return f"no build stamp at {path}: vLLM is not built, or its last build failed"
    except (OSError, ValueError) as error:
        return f"the build stamp {path} cannot be read ({error})"
    return ""


def checkpoint_problem(directory: str) -> str:
    """Return why the checkpoint is not complete: a missing, empty or unreadable file."""
    names = ["config.json", *_weights(directory)]
    if len(names) == 1:
        return f"no *.safetensors in {directory}: the checkpoint is not downloaded"
    for name in names:
        path = os.path.join(directory, name)
        if not os.access(path, os.R_OK):
            return f"{path} is missing or not readable by this user: the checkpoint is incomplete"
        if os.path.getsize(path) == 0:
            return f"{path} is empty: the checkpoint is incomplete"
    return ""


def _weights(directory: str) -> list[str]:
    """Return the names of the weight files: those of the index, or else those that are there."""
    try:
        with open(os.path.join(directory, "model.safetensors.index.json")) as file:
            return sorted(set(json.load(file)["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError):
        return sorted(map(os.path.basename, glob.glob(os.path.join(directory, "*.safetensors"))))


def gpu_problem(wanted: int, root: str = "/") -> str:
    """Return why the driver does not offer as many GPUs as the server was configured for."""
    if wanted == 0:
        return ""
    found = len(glob.glob(os.path.join(root, "proc/driver/nvidia/gpus/*")))
    nodes = len(glob.glob(os.path.join(root, "dev/nvidia[0-9]*")))
    if found == 0:
        return "the NVIDIA driver sees no GPU: look at `nvidia-smi` and `dmesg | grep -i nvrm`"
    if min(found, nodes) < wanted:
        return f"found {found} GPUs and {nodes} device nodes, configured for {wanted}"
    return ""


def listen_problem(address: str, port: int) -> str:
    """Return why the server could not listen there; another server's answers would be taken for
    its own."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            probe.listen()
    except OSError as error:
        return f"cannot listen on {address} port {port} ({error.strerror or error})"
    return ""


def essence(text: str) -> str:
    """Return a unit or an environment file without what systemd does not read.

    Another comment is no reason to load a model anew.
    """
    kept = (line for line in text.splitlines() if line.strip() and line[0] not in "#;")
    return "\n".join(kept)


def record(paths: list[str]) -> dict[str, dict[str, str]]:
    """Return version and, where this user may read it, SHA-256 of the essence of each file."""
    return {path: {"version": _version(path), "sha256": _digest(path)} for path in paths}


def _version(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{status.st_ino}.{status.st_mtime_ns}.{status.st_size}"


def _digest(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return hashlib.sha256(essence(file.read()).encode()).hexdigest()
    except OSError:
        return ""


def main(words: list[str] | None = None) -> int:
    """Return 0 after writing the record, 1 after saying why the server cannot start."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--stamp", required=True, help="the build's stamp")
    parser.add_argument("--checkpoint", required=True, help="directory")
    parser.add_argument("--gpus", type=int, required=True, help="0: serve from the CPU")
    parser.add_argument("--listen", nargs=2, metavar=("ADDRESS", "PORT"), required=True)
    parser.add_argument("--record", required=True, help="file to write")
    parser.add_argument("--watch", nargs="*", default=[], help="files that the server serves from")
    options = parser.parse_args(words)
    problems = [
        stamp_problem(options.stamp),
        checkpoint_problem(options.checkpoint),
        gpu_problem(options.gpus),
        listen_problem(options.listen[0], int(options.listen[1])),
    ]
    for problem in filter(None, problems):
        print(f"refusing to start: {problem}. Run the deploy again", file=sys.stderr)
    if any(problems):
        return 1
    with open(options.record, "w") as file:
        json.dump(record(options.watch), file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
