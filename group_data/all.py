"""Every knob of a host, with the default that holds where no group and no host says otherwise.

Override one in group_data/<group>.py, in the inventory, or for one run with `--data knob=value`.
The defaults are those of a G5g host; group_data/cpu.py is the other profile. Marks: measured =
seen when a program was run, field = the one report from a real G5g host, source = read in the
released source, untested = nobody tried.
"""

# --- what the host must be; preflight refuses it otherwise, in the dry run too

# "cuda": kernels are compiled on the host and served from its GPU. "cpu": kernels come in a wheel.
device = "cuda"

# Machine architectures as `uname -m` gives them.
architectures = ["aarch64"]

# Compute capability that kernels are compiled for, "7.5" for a T4 or T4G; None without a GPU.
cuda_arch = "7.5"

# The interpreter that owns torch. It builds vLLM and serves. Another one on PATH, even of the same
# version, is a trap: everything here uses this path. [field]
python = "/opt/pytorch/bin/python3"

# The release of torch on the image, without its +cu suffix. It is never replaced: the image's build
# has sm_75, PyPI's may not.
torch_version = "2.12.0"

# GiB that must be free under /opt and /var/lib before the first build: tree, toolkit, objects,
# checkpoint. The toolkit takes about 8, a build 15 to 20. [untested]
min_free_disk_gib = 40

# GiB of memory. g5g.xlarge has 8 and gets swap (below).
min_memory_gib = 7

# --- host

# System packages that building or serving needs, beyond those that a later stage names itself.
# libnuma1: without it vLLM's CPU kernels do not import, and its log only warns. [measured]
packages = ["build-essential", "ca-certificates", "git", "libnuma1", "ninja-build"]

# The system account that downloads and serves.
user = "vllm"

# A swap file of `swap_gib` GiB on hosts with at most `swap_below_gib` GiB of memory: there mapping
# the 10.2 GB checkpoint fails with ENOMEM, and 16 GiB of swap cured it. [field]
swap_gib = 16
swap_below_gib = 16

# --- cuda

# The toolkit's package, always of the form cuda-toolkit-X-Y: `cuda` or `cuda-drivers` would bring a
# driver over the image's. None: no toolkit, for hosts without a GPU.
cuda_toolkit = "cuda-toolkit-13-2"

# NVIDIA's repository, up to the distribution; the host's own release and architecture follow.
cuda_repository = "https://developer.download.nvidia.com/compute/cuda/repos"

# The keyring package, and its digest by path below the repository. A distribution that is not
# listed is refused.
cuda_keyring_version = "1.1-1"
cuda_keyring_sha256 = {}

# The key that NVIDIA signs with. [NVIDIA/cuda-repo-management]
cuda_key_fingerprint = "EB693B3035CD5710E231E123A4B469963BF863CC"

# --- source and build

# A version from versions.py. 0.27.2rc0 is the one that served on a T4G. [field]
vllm_version = "0.27.2rc0"

# True: also a version that versions.py does not list. Nothing of ours was checked against it.
allow_unlisted_version = False

# Where the source is fetched from, by tag. A mirror may stand in.
vllm_repository = "https://github.com/vllm-project/vllm.git"

# Names of patches not to apply, for finding out what happens without. Leave it empty to serve.
skip_patches = []

# Compiler jobs at once; None: by the host's memory and cores.
build_jobs = None

# --- model

# A checkpoint of the model hub, or "tiny": a small Gemma 4 trained on the host in seconds.
model_source = "google/gemma-4-E2B-it"

# A branch, tag or commit of the checkpoint. A commit pins it.
model_revision = "main"

# The name that clients ask for.
served_name = "gemma-4"

# Another address of the model hub, such as a mirror; None: the library's own.
hf_endpoint = None
