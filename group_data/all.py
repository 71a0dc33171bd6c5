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
packages = ["build-essential", "ca-certificates", "ccache", "git", "libnuma1", "ninja-build"]

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

# GiB that must be free under /usr/local before the toolkit is installed.
cuda_needs_gib = 10

# The keyring package, and its digest by path below the repository: a distribution that is not
# listed is refused. [source: several public repositories agree on each, two for sbsa]
cuda_keyring_version = "1.1-1"
cuda_keyring_sha256 = {
    "ubuntu2404/sbsa": "6ea7d2737648936820e85677177957a0f6521b840d98eb0bbae0a4f003fa7249",
    "ubuntu2404/x86_64": "d2a6b11c096396d868758b86dab1823b25e14d70333f1dfa74da5ddaf6a06dba",
}

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

# --- rust

# rustup-init by version; None: no Rust on the host, for kernels that come in a wheel. The toolchain
# that it installs is the one that the vLLM version asks for (versions.py).
rustup_version = "1.28.2"

# Its digest by target triple; a triple that is missing here is checked against the digest that is
# published beside the file, and against that alone. [source: Docker's official Rust images]
rustup_sha256 = {
    "aarch64-unknown-linux-gnu": "e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c",
    "x86_64-unknown-linux-gnu": "20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c",
}

# Where rustup-init is fetched from, and where it fetches toolchains from (None: its own default).
rustup_archive = "https://static.rust-lang.org/rustup/archive"
rust_dist_server = None

# --- model

# A checkpoint of the model hub, or "tiny": a small Gemma 4 trained on the host in seconds.
model_source = "google/gemma-4-E2B-it"

# A branch, tag or commit of the checkpoint. A commit pins it.
model_revision = "main"

# Another address of the model hub, such as a mirror; None: the library's own.
hf_endpoint = None

# "secretsmanager": the host fetches the hub's token at each boot with its own role. "none": the
# checkpoint is ungated or local, and there is no token at all.
hf_token_source = "none"

# Where the token lies: region, and name or ARN of the secret.
hf_token_region = ""
hf_token_secret = ""

# True: where a fetch fails, go on with the last good token rather than stay down.
hf_token_keep_last = False

# --- service

# "vllm", or "transformers" for `transformers serve`: the same checkpoint, for a second opinion on a
# figure. Switching stops the one and starts the other.
runtime = "vllm"

# The name that clients ask for; transformers serve knows its checkpoint by path alone.
served_name = "gemma-4"

# Where the server listens. Anything but loopback asks clients for an API key.
address = "127.0.0.1"
port = 8000

# "auto": a key unless the address is loopback; "always"; "none": none, with a warning. The key is
# made on the host and never leaves it; raise the generation to have another one made.
api_key = "auto"
api_key_generation = 1

# GPUs to spread the model over; 0 serves from the CPU.
gpus = 1

# float16: compute capability 7.5 has no bfloat16, and an explicit one is refused. [source]
dtype = "float16"
kv_cache_dtype = "auto"

# Tokens of context, and requests at once. 8 saturates a T4G. [field]
max_model_len = 4096
max_num_seqs = 8

# Share of each GPU's memory that vLLM takes. [field: 13,501 of 15,360 MiB]
gpu_memory_utilization = 0.9

# MemoryMax= of the unit: the model is killed before the SSM agent.
memory_max = "95%"

# Seconds that a start may take until the server answers. A first boot from a snapshot took about
# 18 minutes. [field]
ready_seconds = 2700

# Seconds that requests in flight get when the service stops: at most 80, since a spot instance is
# gone two minutes after its notice.
drain_seconds = 30

# Drain the server when EC2 gives notice that it takes a spot instance back.
watch_spot = True

# Read checkpoint and packages with many readers before a host's first start. [untested]
prewarm = False

# Further arguments and variables of the server, as vLLM documents them.
server_arguments = []
server_environment = {}

# --- smoke

# What a healthy server is asked, and a regular expression that its answer must match.
question = "What is the capital of France? Answer in one sentence."
expected_answer = r"(?i)\bparis\b"

# "auto": only when what is served changed; "always": in every run.
smoke = "auto"

# Tokens of the answers that are timed, three times each after one that warms up.
smoke_lengths = [64, 256]

# GB/s of memory reads: 80 % of the 320.1 that a T4G's memory bus can do; 277.0 were read. [field]
# None: measured and recorded, nothing demanded.
least_read_gb_per_s = 256.0

# Tokens a second of a single stream. 42.9 were served. [field]
least_tokens_per_s = 35.0

# --- bench; read by bench.py alone

# "auto": only when what is served, or how it is measured, changed; "always": in every run.
bench = "auto"

# Tokens of the prompt and of the answer, each with each, one stream at a time. What does not fit
# the model is reported as infeasible.
bench_contexts = [64, 512, 1024, 2048, 3800]
bench_outputs = [32, 128]

# Requests at a time, of 512 tokens in and 128 out.
bench_concurrencies = [1, 2, 4, 8, 16, 32]

# Batches of each cell, after one warm-up that no figure contains.
bench_repeats = 3

# True: every prompt begins with digits that no prefix cache has seen. With repeated prompts 94.7 %
# of the tokens were found in it, and the time to first token was 30 times too good. [field]
bench_nonce = True

# Where the runs and their pages are kept on this machine.
bench_reports = "reports"

# Bytes of weights that one token reads, for the ceiling that memory sets: those of Gemma 4 E2B less
# its embedding tables, of which a token reads one row. [field] None: no ceiling is drawn.
streamed_bytes_per_token = 4.514e9
