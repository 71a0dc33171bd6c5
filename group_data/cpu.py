"""A host without a GPU: the real vLLM with kernels out of a wheel, and a tiny checkpoint.

It rehearses everything but the compilation and the GPU, in a container or on any machine.
"""

device = "cpu"
architectures = ["x86_64", "aarch64"]
cuda_arch = None

# The CPU build of the release that 0.32.0's kernels are compiled against. [source]
torch_version = "2.13.0"

# The only release that was installed and served from with kernels out of a wheel. [measured]
vllm_version = "0.32.0"

min_free_disk_gib = 6
min_memory_gib = 4

# Nothing is compiled.
packages = ["ca-certificates", "git", "libnuma1"]

# Neither, unless a rehearsal asks for them; a stand-in of the toolkit is small.
cuda_toolkit = None
cuda_needs_gib = 1
rustup_version = None

model_source = "tiny"
served_name = "tiny-gemma-4"

gpus = 0
dtype = "float32"
max_model_len = 2048

# The key-value cache in GiB, which vLLM would otherwise take half of the memory for. [measured]
server_environment = {"VLLM_CPU_KVCACHE_SPACE": "1"}

# Graphs compiled for a CPU would rehearse nothing and cost half a minute at each start.
server_arguments = ["--enforce-eager"]

# Healthy after 28 to 57 s on an idle machine of 2 cores. [measured]
ready_seconds = 600
drain_seconds = 5

# There is no instance to take back.
watch_spot = False

question = "What is SRE?"
expected_answer = r"applies software engineering to operations"

# Speeds of a rehearsal say nothing of the hardware: measure little, demand nothing.
smoke_lengths = [16, 64]
least_read_gb_per_s = None
least_tokens_per_s = None

# A rehearsal of the benchmark, in two minutes; 2,048 tokens do not fit and are to be reported so.
bench_contexts = [64, 512, 2048]
bench_outputs = [16, 64]
bench_concurrencies = [1, 2, 4]
streamed_bytes_per_token = None
