"""The server as configured: the arguments and the environment that vLLM is started with.

Pure functions from a `Server` to text. The unit, the comparison with the running process and the
tests all start from these, so what is compared is what was written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import PurePosixPath

CACHE = "/var/cache/vllm-g5g"  # CacheDirectory= of the unit: all that vLLM writes

# Read by no release since 0.27 (source), and fatal under --fail-on-environ-validation.
DEAD_VARIABLES = {"VLLM_ATTENTION_BACKEND": "use --attention-backend in server_arguments"}
SECRET_VARIABLES = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY"})


@dataclass(frozen=True)
class Server:
    """One vLLM server. `gpus` is 0 on a host that serves from its CPU."""

    python: str  # the interpreter that owns torch and vLLM
    model: str  # directory of the checkpoint
    served_name: str  # what clients call the model
    address: str
    port: int
    dtype: str
    kv_cache_dtype: str
    max_model_len: int  # tokens
    max_num_seqs: int
    gpus: int
    gpu_memory_utilization: float  # share of each GPU's memory; unused without a GPU
    drain_seconds: int  # that requests in flight get when the unit stops
    ready_seconds: int  # that the engine may take to load; a first boot reads the disk at 9-21 MB/s
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()  # directories in front of PATH, such as the CUDA toolkit's bin

    @property
    def url(self) -> str:
        """Where the host itself asks the server."""
        return f"http://{reachable_address(self.address)}:{self.port}"


def argv(server: Server) -> list[str]:
    """Return the whole command line, as /proc/PID/cmdline will show it.

    -P keeps the working directory off sys.path, where a folder `vllm` would be imported instead.
    """
    gpu = ["--gpu-memory-utilization", str(server.gpu_memory_utilization)] if server.gpus else []
    return [
        *(server.python, "-P", "-m", "vllm.entrypoints.cli.main", "serve", server.model),
        *("--served-model-name", server.served_name),
        *("--host", server.address, "--port", str(server.port)),
        *("--dtype", server.dtype, "--kv-cache-dtype", server.kv_cache_dtype),
        *("--max-model-len", str(server.max_model_len)),
        *("--max-num-seqs", str(server.max_num_seqs)),
        *("--tensor-parallel-size", str(max(server.gpus, 1))),
        *gpu,
        *("--shutdown-timeout", str(server.drain_seconds)),
        "--fail-on-environ-validation",
        *server.arguments,
    ]


def environment(server: Server) -> dict[str, str]:
    """Return the variables of the environment file; none is a secret.

    The checkpoint is complete before the service starts, so the hub is never asked: offline, and
    without a token (with a repository's name instead of a path it is asked even so: vllm #1910).
    """
    bin_directory = str(PurePosixPath(server.python).parent)
    return {
        "HOME": CACHE,
        "PATH": ":".join([bin_directory, *server.path, "/usr/local/bin", "/usr/bin", "/bin"]),
        "HF_HOME": f"{CACHE}/huggingface",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TORCHINDUCTOR_CACHE_DIR": f"{CACHE}/inductor",
        "TRITON_CACHE_DIR": f"{CACHE}/triton",
        "VLLM_CACHE_ROOT": f"{CACHE}/vllm",
        "VLLM_CONFIG_ROOT": f"{CACHE}/vllm-config",
        "VLLM_ENGINE_READY_TIMEOUT_S": str(server.ready_seconds),
        "VLLM_NO_USAGE_STATS": "1",
        "NO_COLOR": "1",
        **server.environment,
    }


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach a server that listens on `address`."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def reachable_address(address: str) -> str:
    """Return the address at which the host itself reaches a server that listens on `address`."""
    local = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(address, address)
    return f"[{local}]" if ":" in local and not local.startswith("[") else local


def needs_key(address: str, key: str) -> bool:
    """Return whether the server asks for an API key; `key` is auto, always or none."""
    return key == "always" or (key == "auto" and not is_loopback(address))


def exposure(server: Server, key: str) -> str | None:
    """Return the warning that an open server deserves, None where there is nothing to warn of."""
    if is_loopback(server.address) or needs_key(server.address, key):
        return None
    where = f"{server.address}:{server.port}"
    return f"anyone who reaches {where} may use the model: api_key is {key!r}. Set it to 'auto'"


def problems(server: Server, compute_capability: str | None) -> list[str]:
    """Return why this server could never run; empty where nothing speaks against it.

    `compute_capability` is the lowest of the host's GPUs, as "7.5"; None without a GPU.
    """
    found = [
        f"server_environment sets {name}, which no supported release reads: {remedy}"
        for name, remedy in DEAD_VARIABLES.items()
        if name in server.environment
    ]
    found += [
        f"server_environment sets {name}: a secret there is readable by every user. "
        "The token and the API key have stages of their own"
        for name in sorted(SECRET_VARIABLES & server.environment.keys())
    ]
    return found + _precision_problems(server, compute_capability)


def _precision_problems(server: Server, compute_capability: str | None) -> list[str]:
    """Precisions that vLLM refuses on this GPU, a ValueError after a minute of loading (source)."""
    if compute_capability is None:
        return []
    asked = [
        ("dtype", server.dtype, "bfloat16", "8.0", "float16"),
        ("kv_cache_dtype", server.kv_cache_dtype, "bfloat16", "8.0", "auto"),
        ("kv_cache_dtype", server.kv_cache_dtype, "fp8", "8.9", "auto"),
    ]
    return [
        f'{knob} "{value}" needs compute capability {least}, found {compute_capability}. '
        f'Set {knob} = "{instead}"'
        for knob, value, refused, least, instead in asked
        if value.startswith(refused) and _version(compute_capability) < _version(least)
    ]


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
