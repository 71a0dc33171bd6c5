"""What a finished build must show before it is stamped: files, imports, code, and right results.

Everything is asked of the installed package in processes of its own, from /: in the tree's own
directory its sources would be imported instead.
"""

import glob
import hashlib
import json
import os
import subprocess
import sys

IDENTITY = "import json, vllm; print(json.dumps([vllm.__version__, vllm.__path__[0]]))"
# By metadata, as the version before was read: torch's own word may have another suffix.
TORCH = """
import importlib.metadata, json, torch
print(json.dumps([importlib.metadata.version("torch"), torch.cuda.get_arch_list()]))
"""
# torch first: the extensions link to its libraries and do not know where they lie.
IMPORTS = """
import importlib, json, sys, torch
errors = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        errors[name] = f"{type(error).__name__}: {error}"
print(json.dumps(errors))
"""
# Half precision has 11 bits: a rounded sum of exact products is off by about 3e-4. [inference]
PRODUCT = """
import json, torch
torch.manual_seed(0)
left, right = (torch.randn(1024, 1024, dtype=torch.float16) for _ in range(2))
exact = left.double() @ right.double()
found = (left.cuda() @ right.cuda()).cpu().double()
print(json.dumps(((found - exact).norm() / exact.norm()).item()))
"""
MOST_PRODUCT_ERROR = 2e-3


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def ask(python, text, *arguments):
    """Return what a program printed last, from JSON; its own output above goes to the log."""
    command = (python, "-c", text, *arguments)
    done = subprocess.run(command, cwd="/", check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def check_identity(python, version):
    """Return the directory of the installed package."""
    found, package = ask(python, IDENTITY)
    if found != version:
        sys.exit(f"installed vLLM says that it is {found}, wanted {version}")
    return package


def check_torch(python, version, target):
    """The host's torch must be what it was before: nothing of this was made for another."""
    found, architectures = ask(python, TORCH)
    if found != version:
        sys.exit(f"torch is {found} after the installation, it was {version} before")
    if target is not None and target not in architectures:
        sys.exit(f"torch has code for {', '.join(architectures) or 'no GPU'}, wanted {target}")


def check_artifacts(package, patterns):
    """Return path -> sha256 of the files that the patterns match; every pattern must."""
    found = {pattern: glob.glob(os.path.join(package, pattern)) for pattern in patterns}
    if missing := sorted(pattern for pattern, paths in found.items() if not paths):
        sys.exit(f"the build lacks {', '.join(missing)} in {package}")
    return {path: sha256(path) for paths in found.values() for path in sorted(paths)}


def check_extensions(python, names):
    """Import every compiled module of the package."""
    if errors := ask(python, IMPORTS, *names):
        told = "; ".join(f"{name} does not load: {error}" for name, error in errors.items())
        sys.exit(f"the build is broken: {told}")
    return list(names)


def check_code(cuobjdump, target, package, patterns):
    """Return how many kernels' images for the target each library holds; none is a fault."""
    counts = {}
    for path in sorted(path for pattern in patterns for path in glob.glob(f"{package}/{pattern}")):
        command = (cuobjdump, "--list-elf", path)
        # A library without any code for GPUs is told by an exit status of its own.
        listing = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True).stdout
        counts[os.path.basename(path)] = listing.count(f".{target}.")
    if lacking := sorted(name for name, count in counts.items() if not count):
        sys.exit(f"no code for {target} in {', '.join(lacking)}: the GPU could not run it")
    return counts


def check_product(python):
    """Return the relative error of a half-precision product on the GPU."""
    error = ask(python, PRODUCT)
    if not error < MOST_PRODUCT_ERROR:
        sys.exit(
            f"a half-precision product on the GPU is wrong by {error:.1e}, at most "
            f"{MOST_PRODUCT_ERROR} is right: check the driver and torch before vLLM"
        )
    return error


def check_attention(python, probe, package):
    """Launch the installed attention kernels on the GPU; return their errors against torch."""
    module = os.path.basename(probe["folder"])
    options = (f"--capability={probe['capability']}", f"--limit={probe['limit']}")
    command = (python, "-B", "-m", module, *options, "--numerics=cuda", os.path.dirname(package))
    folder = os.path.dirname(probe["folder"])
    done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    if found["faults"]:
        sys.exit(f"the installed attention kernels are wrong: {'; '.join(found['faults'])}")
    return found["compared"]


def unchecked(wanted):
    """Return what this host cannot show, in words."""
    missing = []
    if wanted["target"] is None:
        missing.append("code for a GPU")
    elif not os.path.exists(wanted["cuobjdump"]):
        missing.append(f"code for {wanted['target']} (no {wanted['cuobjdump']})")
    if not wanted["gpu"]:
        missing.append("a product on the GPU")
    if not wanted["attention"]:
        missing.append("attention against torch")
    return missing


def check(python, version, torch, wanted):
    """Return what was checked and found, for the stamp; exit with the reason where it is bad.

    + version, torch: what the installed vLLM and torch must call themselves
    + artifacts, extensions: file patterns in the package, modules to import
    + cuobjdump, target, kernels: NVIDIA's tool, "sm_75", patterns of the libraries with kernels
    + attention: folder of the probe, capability and limit in bytes; None where not scarce
    + gpu: whether there is one
    """
    package = check_identity(python, version)
    check_torch(python, torch, wanted["target"])
    found = {
        "artifacts": check_artifacts(package, wanted["artifacts"]),
        "extensions": check_extensions(python, wanted["extensions"]),
    }
    if wanted["target"] is not None and os.path.exists(wanted["cuobjdump"]):
        where = (package, wanted["kernels"])
        found["code"] = check_code(wanted["cuobjdump"], wanted["target"], *where)
    if wanted["gpu"]:
        found["product_error"] = check_product(python)
    if wanted["attention"]:
        found["attention"] = check_attention(python, wanted["attention"], package)
    return {**found, "unchecked": unchecked(wanted)}
