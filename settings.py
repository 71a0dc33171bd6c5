"""Every knob of a host, as one validated object; group_data/all.py documents each of them.

A knob has its default in group_data/all.py alone, so what a reader finds there is what holds. A
value that cannot work is an error here, before anything was run on a host.
"""

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pyinfra.api.exceptions import DeployError

import versions
from desired.serving import needs_key
from runtimes import RUNTIMES

# Data of pyinfra and its connectors, which are not knobs of ours.
FOREIGN = re.compile(
    r"(ssm|ssh|docker|podman|vagrant|chroot|winrm)_|_|(ec2|instance)_|(sudo|su_user|shell)"
)


def _a_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
AbsolutePath = Annotated[str, Field(pattern=r"^/[^\s'\"\\]*$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Positive = Annotated[float, Field(gt=0)]
Tokens = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """The knobs of one host; each is documented where its default is, in group_data/all.py."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    device: Literal["cuda", "cpu"]
    architectures: tuple[str, ...]
    cuda_arch: Annotated[str, Field(pattern=r"^\d+\.\d$")] | None
    python: AbsolutePath
    torch_version: str
    min_free_disk_gib: Positive
    min_memory_gib: Positive

    packages: tuple[Name, ...]
    user: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    swap_gib: Annotated[int, Field(ge=0)]
    swap_below_gib: Annotated[int, Field(ge=0)]

    cuda_toolkit: Annotated[str, Field(pattern=r"^cuda-toolkit-\d+-\d+$")] | None
    cuda_needs_gib: Positive
    cuda_repository: str
    cuda_keyring_version: str
    cuda_keyring_sha256: Mapping[str, Sha256]
    cuda_key_fingerprint: Annotated[str, Field(pattern=r"^[0-9A-F]{40}$")]

    vllm_version: str
    allow_unlisted_version: bool
    vllm_repository: str
    skip_patches: tuple[str, ...]
    build_jobs: Annotated[int, Field(ge=1)] | None

    rustup_version: str | None
    rustup_sha256: Mapping[str, Sha256]
    rustup_archive: str
    rust_dist_server: str | None

    model_source: str
    model_revision: str
    hf_endpoint: str | None
    hf_token_source: Literal["secretsmanager", "none"]
    hf_token_region: str
    hf_token_secret: str
    hf_token_keep_last: bool

    runtime: Literal["vllm", "transformers"]
    served_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]
    address: str
    port: Port
    api_key: Literal["auto", "always", "none"]
    api_key_generation: Annotated[int, Field(ge=1)]
    gpus: Annotated[int, Field(ge=0)]
    dtype: Literal["auto", "float16", "bfloat16", "float32"]
    kv_cache_dtype: str
    max_model_len: Annotated[int, Field(ge=1)]
    max_num_seqs: Annotated[int, Field(ge=1)]
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)]
    memory_max: str
    ready_seconds: Annotated[int, Field(ge=1)]
    drain_seconds: Annotated[int, Field(ge=0, le=80)]
    watch_spot: bool
    prewarm: bool
    server_arguments: tuple[str, ...]
    server_environment: Mapping[str, str]

    question: str
    expected_answer: Annotated[str, AfterValidator(_a_pattern)]
    smoke: Literal["auto", "always"]
    smoke_lengths: tuple[Annotated[int, Field(ge=2)], ...]
    least_read_gb_per_s: Positive | None
    least_tokens_per_s: Positive | None

    bench: Literal["auto", "always"]
    bench_contexts: tuple[Tokens, ...]
    bench_outputs: tuple[Tokens, ...]
    bench_concurrencies: tuple[Tokens, ...]
    bench_repeats: Tokens
    bench_nonce: bool
    bench_reports: str
    streamed_bytes_per_token: Positive | None

    @classmethod
    def of(cls, host_name: str, data: Mapping[str, Any]) -> Self:
        """Return the settings of a host from its pyinfra data.

        Raises:
            DeployError: naming the host and, knob by knob, what was found and what is wanted.
        """
        own = {key: value for key, value in data.items() if not FOREIGN.match(key)}
        try:
            return cls(**own)
        except ValidationError as error:
            faults = [_describe(fault, cls.model_fields) for fault in error.errors()]
            raise DeployError(f"[{host_name}] " + "; ".join(faults)) from error

    @model_validator(mode="after")
    def _must_fit_together(self) -> Self:
        if (self.device == "cuda") != (self.cuda_arch is not None):
            raise ValueError(
                f"device = {self.device!r} with cuda_arch = {self.cuda_arch!r} cannot work: "
                "set cuda_arch for device cuda, and None for device cpu"
            )
        if self.device == "cuda" and self.cuda_toolkit is None:
            raise ValueError("device = 'cuda' needs cuda_toolkit: kernels are compiled on the host")
        version = versions.find(self.vllm_version, allow_unlisted=self.allow_unlisted_version)
        if self.device == "cpu" and version.number not in versions.CPU_VERSIONS:
            raise ValueError(
                f"vllm_version {version.number} has no CPU kernels to install: use one of "
                f"{', '.join(versions.CPU_VERSIONS)} in the cpu group"
            )
        if not RUNTIMES[self.runtime].takes_api_key and needs_key(self.address, self.api_key):
            raise ValueError(
                f"runtime = {self.runtime!r} cannot ask for an API key: keep address on loopback, "
                "with api_key = 'auto'"
            )
        if (self.device == "cuda") != (self.gpus > 0):
            raise ValueError(f"device = {self.device!r} with gpus = {self.gpus} cannot work")
        if self.hf_token_source != "none" and not (self.hf_token_region and self.hf_token_secret):
            raise ValueError("hf_token_source needs hf_token_region and hf_token_secret")
        return self

    @property
    def version(self) -> versions.Version:
        """What is known of the vLLM version."""
        return versions.find(self.vllm_version, allow_unlisted=self.allow_unlisted_version)

    @property
    def capability(self) -> tuple[int, int] | None:
        """The compute capability as numbers, (7, 5); None without a GPU."""
        if self.cuda_arch is None:
            return None
        major, minor = self.cuda_arch.split(".")
        return int(major), int(minor)


def _describe(fault: Any, knobs: Mapping[str, Any]) -> str:
    """Return one sentence on a validation fault; a misspelt knob gets its nearest name."""
    if not fault["loc"]:
        return str(fault["msg"]).removeprefix("Value error, ")
    knob = ".".join(map(str, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(knob, knobs, n=1)
        hint = f"did you mean {near[0]}?" if near else "see group_data/all.py for what there is."
        return f"unknown knob {knob}: {hint}"
    if fault["type"] == "missing":
        return f"knob {knob} has no value: it belongs in group_data/all.py"
    return f"knob {knob} is {fault['input']!r}: {fault['msg']}"
