"""Put a checkpoint in its place, whole, with a manifest of what it holds.

Run as a job (files/jobs/job.py). Argument: a JSON file with directory, identity, python, producer
(source text of a program that writes the checkpoint into the directory given as its first
argument) and arguments (of the producer, after that). A download that broke off goes on where it
was, in `<directory>.partial`; the directory itself appears only when it is complete.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(directory):
    """Return relative path -> size, mtime_ns and sha256 of every file, less hidden folders."""
    files = {}
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not name.startswith(".")]
        os.chmod(folder, 0o755)
        for name in names:
            path = os.path.join(folder, name)
            os.chmod(path, 0o644)  # the service's user reads what another user wrote
            status = os.stat(path)
            files[os.path.relpath(path, directory)] = {
                "size": status.st_size,
                "mtime_ns": status.st_mtime_ns,
                "sha256": sha256(path),
            }
    return files


def produce(spec, partial):
    identity = os.path.join(partial, ".identity")
    if os.path.exists(partial) and read(identity) != spec["identity"]:
        shutil.rmtree(partial)  # the rest of another checkpoint
    os.makedirs(partial, exist_ok=True)
    with open(identity, "w") as file:
        file.write(spec["identity"])
    command = (spec["python"], "-u", "-c", spec["producer"], partial, *spec["arguments"])
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"could not make {spec['identity']}; the reason is above")
    os.remove(identity)


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def main(path):
    with open(path) as file:
        spec = json.load(file)
    directory = spec["directory"]
    manifest, partial = directory + ".manifest.json", directory + ".partial"
    produce(spec, partial)
    print("computing digests", flush=True)
    files = describe(partial)
    if os.path.exists(manifest):
        os.remove(manifest)
    shutil.rmtree(directory, ignore_errors=True)
    os.replace(partial, directory)
    with open(manifest + ".new", "w") as file:
        json.dump({"identity": spec["identity"], "files": files}, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(manifest + ".new", manifest)
    total = sum(found["size"] for found in files.values())
    print(f"{spec['identity']} is in place: {len(files)} files, {total / 1e6:.1f} MB", flush=True)


main(*sys.argv[1:])
