"""The known failures of a build, a download and a server: what the log says, why, what to do.

Specific entries stand before general ones. `evidence` says where each was seen: measured, source
(read in the released source), field (on a real g5g host), or the public report.
"""

from failures.diagnosis import Failure

SERVING = (
    Failure(
        "no kernel image",
        r"no kernel image is available for execution",
        "something that runs has no code for this GPU: vLLM or torch was built for other "
        "architectures than SM 7.5",
        'compare torch.cuda.get_arch_list() with cuda_arch ("7.5"), then rebuild: a changed '
        "cuda_arch is a changed stamp",
        "field",
    ),
    Failure(
        "shared memory of the GPU",
        r"OutOfResources.*shared memory|out of resource: shared memory",
        "an attention tile needs more than the 65,536 bytes of shared memory of SM 7.5: the tile "
        "clamp is not applied to what runs",
        "run the deploy again: it applies turing-tile-clamp.patch and rebuilds",
        "measured (98,304 bytes asked for at head 512), vllm-project/vllm#57712",
    ),
    Failure(
        "transformers too new",
        r"AmbiguousGlobalPerLayerAttributeError",
        "this vLLM predates transformers 5.15, which it dies of on Gemma 4",
        "set vllm_version to 0.28.0 or later, or pin transformers==5.14.1",
        "measured, vllm-project/vllm#51744",
    ),
    Failure(
        "transformers too old",
        r"(does not recognize this architecture|model type `?gemma4)",
        "the installed transformers does not know this model",
        "install the transformers that requirements/ of this vLLM names; run the deploy again",
        "source",
    ),
    Failure(
        "checkpoint cannot be mapped",
        r"unable to mmap|Cannot allocate memory.*safetensors|os error 12",
        "the host has too little memory to map the checkpoint (10.2 GB on a host of 8 GiB)",
        "set swap_gib = 16, which cures it, or take a size with 16 GiB",
        "field (g5g.xlarge)",
    ),
    Failure(
        "GPU memory taken",
        r"Free memory on device.*is less than desired GPU memory utilization",
        "another process holds memory of the GPU; an orphaned engine does",
        "nvidia-smi names it; stop it, or lower gpu_memory_utilization",
        "source, vllm-project/vllm#55510",
    ),
    Failure(
        "no room for the KV cache",
        r"No available memory for the cache blocks|KV cache is needed, which is larger than",
        "after the weights too little GPU memory is left for one sequence of max_model_len",
        "lower max_model_len, or raise gpu_memory_utilization (at most 0.95)",
        "source",
    ),
    Failure(
        "GPU out of memory",
        r"CUDA out of memory|CUDA error: out of memory|torch\.OutOfMemoryError",
        "the GPU's 15,360 MiB are full",
        "lower max_num_seqs, max_model_len or gpu_memory_utilization; look for a second process in "
        "nvidia-smi",
        "field",
    ),
    Failure(
        "driver and library differ",
        r"driver/library version mismatch",
        "the driver's libraries were upgraded under the loaded kernel module "
        "(unattended-upgrades does that)",
        "reboot the host; the deploy holds the packages from then on",
        "NVIDIA/nvidia-driver role #11, field",
    ),
    Failure(
        "driver too old",
        r"CUDA driver version is insufficient|forward compatibility was attempted on non supported",
        "the driver is older than the CUDA that torch was built with",
        "take a newer image; never install cuda-drivers over the image's driver",
        "field",
    ),
    Failure(
        "no GPU in reach",
        r"No CUDA GPUs are available|driver sees no GPU|CUDA unknown error|libcuda\.so\.1: cannot",
        "the driver is not loaded or its device nodes are missing",
        "look at nvidia-smi and dmesg; an image without the NVIDIA driver boots on a g5g too",
        "field",
    ),
    Failure(
        "precision not on this GPU",
        r"Bfloat16 is only supported on GPUs|(FP8|bfloat16) KV cache is not supported",
        "SM 7.5 has neither bfloat16 nor fp8",
        'set dtype = "float16" and kv_cache_dtype = "auto"',
        "source",
    ),
    Failure(
        "unknown variable",
        r"Unknown vLLM environment variable detected: (\S+)",
        "server_environment has a variable that this vLLM does not read",
        "correct or remove it; vLLM renames some between releases",
        "source",
    ),
    Failure(
        "unknown argument",
        r"error: unrecognized arguments|error: argument --",
        "server_arguments has a flag that this vLLM does not know",
        "correct it (`vllm serve --help=all` on the host lists them)",
        "source",
    ),
    Failure(
        "port in use",
        r"address already in use|EADDRINUSE|Errno 98\b",
        "another process listens on the server's port",
        "`ss -ltnp` on the host names it; stop it, or set port",
        "measured",
    ),
    Failure(
        "CPU slot mapping",
        r"Boolean value of Tensor with more than one value is ambiguous",
        "the release source of 0.32.0 breaks every model on a CPU: the server looks healthy and "
        "the first chat kills its engine",
        "run the deploy again: it applies cpu-slot-mapping.patch (unless skip_patches names it)",
        "measured",
    ),
    Failure(
        "shared memory of the host",
        r"No space left on device.*(shm|psm_)|(/dev/shm|shared memory).*No space left",
        "/dev/shm is too small: the engine wants 160 MiB",
        "give a container --shm-size=2g; on a host look for leftovers in /dev/shm",
        "measured",
    ),
    Failure(
        "NUMA library missing",
        r"libnuma\.so\.1: cannot open|Failed to import from vllm\._C",
        "vLLM's compiled part cannot be loaded",
        "install libnuma1 (it is in the host's packages); run the deploy again",
        "measured",
    ),
    Failure(
        "Python headers missing",
        r"Python\.h: No such file|Can't find Python\.h",
        "kernels are compiled as the server starts, against Python.h, which is not there",
        "install the headers of the serving interpreter (python3-dev), or serve with "
        "--enforce-eager in server_arguments",
        "measured (on a CPU; Triton's launchers need the same header)",
    ),
    Failure(
        "hub asked while offline",
        r"OfflineModeIsEnabled|LocalEntryNotFoundError|outgoing traffic has been disabled",
        "the server was given a file that is not in the checkpoint, and it may not ask the hub",
        "run the deploy again: it completes the checkpoint",
        "vllm-project/vllm#1910",
    ),
    Failure(
        "checkpoint damaged",
        r"SafetensorError|HeaderTooLarge|InvalidHeader|MetadataIncompleteBuffer",
        "a weight file is cut short or is no safetensors file",
        "run the deploy again: it verifies each file and downloads the bad one",
        "source",
    ),
    Failure(
        "checkpoint not complete",
        r"refusing to start: .*checkpoint|refusing to start: .*safetensors",
        "the checkpoint is not complete",
        "run the deploy again: it downloads what is missing",
        "measured",
    ),
    Failure(
        "no build",
        r"refusing to start: .*stamp|No module named .?vllm\b",
        "vLLM is not built on this host, or its last build failed",
        "run the deploy again; the build's log is in /var/log/vllm-g5g",
        "measured",
    ),
    Failure(
        "degenerate text",
        r"degenerate text",
        "the server answers, but not in language: a wrong precision, a damaged checkpoint, or a "
        "base model asked to chat",
        'set dtype = "float16"; verify the checkpoint; take an instruction-tuned (-it) model. Ask '
        "/v1/chat/completions: raw /v1/completions repeats itself on such a model",
        "field",
    ),
    Failure(
        "key refused",
        r"answered a chat with 401",
        "the server was started with another API key than the file has",
        "run the deploy again: it restarts the server with the file's key",
        "measured",
    ),
)

BUILDING = (
    Failure(
        "compiler killed",
        r"Killed signal terminated program|signal 9.*(cc1plus|cicc|nvcc|ptxas)|nvcc error.*signal",
        "the kernel killed a compiler for want of memory (up to 3.1 GiB a job)",
        "lower build_jobs, or set swap_gib = 16",
        "measured (memory per unit), NVIDIA/flash-attention#2079",
    ),
    Failure(
        "setuptools_rust missing",
        r"No module named .setuptools_rust",
        "pip builds without isolation and installs no build requirement by itself",
        "run the deploy again: the rust stage puts it into the interpreter that builds",
        "field",
    ),
    Failure(
        "compiler too old",
        r"GCC >= [0-9.]+ is required|unsupported GNU version",
        "vLLM 0.32 and later refuse a GCC before 13",
        "take Ubuntu 24.04, or set vllm_version below 0.32",
        "source",
    ),
    Failure(
        "no nvcc",
        r"nvcc.*(No such file|not found)|CUDA_HOME (is )?not set|Failed to find nvcc",
        "the CUDA compiler is not where CUDA_HOME points; the image has none",
        "run the deploy again: the cuda stage installs cuda-toolkit-13-2",
        "field",
    ),
    Failure(
        "tag missing",
        r"Remote branch .* not found|pathspec .* did not match|unknown revision",
        "the repository has no such tag",
        "check vllm_version",
        "source",
    ),
    Failure(
        "patch refused",
        r"patch does not apply|patch failed:",
        "a patch is for other versions than this tree",
        "rebase it under files/patches, or set vllm_version to one that it is for",
        "measured",
    ),
    Failure(
        "dependency fetch",
        r"the host's way out to that address|Failed to clone repository|FetchContent.*failed"
        r"|Could not resolve host",
        "the build fetches cutlass and others from GitHub, which this host does not reach",
        "open the way out (NAT, proxy), or point the host's git to a mirror: git config --system "
        "url.<mirror>.insteadOf https://github.com/",
        "measured (without a network)",
    ),
    Failure(
        "requirements disagree",
        r"ResolutionImpossible|No matching distribution found|conflicting dependencies",
        "no set of packages fits torch of the image and this vLLM",
        "compare torch's version with the one that this vLLM pins",
        "measured",
    ),
)

DOWNLOADING = (
    Failure(
        "token refused",
        r"the hub refused \S+: it is gated|401 Client Error|Invalid user token|GatedRepoError"
        r"|gated repo|403 Client Error.*hugging",
        "the hub refused the token, or the token's owner has not accepted the model's licence",
        "accept the licence on the model's page, store a valid token in hf_token_secret, then "
        "`systemctl restart vllm-token`",
        "field",
    ),
    Failure(
        "no such model",
        r"the hub has no \S+, or|RepositoryNotFoundError",
        "model_source names no repository that the token may see",
        "check model_source, and that the token's owner may see it",
        "source",
    ),
    Failure(
        "hub not reached",
        r"downloading \S+ broke off: \w*(Connect|Timeout|Protocol|Resolution)",
        "the way to the model hub is closed, or broke off in the middle",
        "open the way out (NAT, proxy) or set hf_endpoint, then run the deploy again: it goes on "
        "where it was",
        "source",
    ),
)

GENERAL = (
    Failure(
        "disk full",
        r"No space left on device|Errno 28\b|disk quota exceeded",
        "a file system is full: the toolkit takes 8 GB, a build up to 20 GB, the checkpoint 10 GB",
        "`df -h` on the host names it; enlarge the volume, then run the deploy again",
        "field",
    ),
    Failure(
        "clock wrong",
        r"certificate is not yet valid|Signature expired|RequestTimeTooSkewed",
        "the host's clock is off",
        "timedatectl set-ntp true; wait for `timedatectl` to say synchronized",
        "aws/amazon-ecs-agent#1513",
    ),
    Failure(
        "killed for memory",
        r"oom-kill|Out of memory: Killed|status=9/KILL|result 'oom-kill'",
        "the kernel killed the process for want of memory",
        "set swap_gib = 16, or take a larger size; memory_max bounds the server alone",
        "field",
    ),
    # Last: a start that is late has mostly one of the causes above.
    Failure(
        "engine too slow to load",
        r"Timed out waiting for engine|did not become ready|has not answered a",
        "loading took longer than ready_seconds: a fresh volume reads at 9 to 21 MB/s",
        "wait and run the deploy again (the second read takes a tenth), or raise ready_seconds",
        "field (18 min on a first boot)",
    ),
)
