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

cuda_toolkit = None

model_source = "tiny"
served_name = "tiny-gemma-4"
