"""The table of known failures, against lines as the programs print them."""

import re

import pytest

from failures.diagnosis import diagnose, explain
from failures.known import BUILDING, DOWNLOADING, GENERAL, SERVING

KNOWN = (*SERVING, *BUILDING, *DOWNLOADING, *GENERAL)
# As vLLM, torch, Triton, pip and the kernel word them.
SEEN = {
    "no kernel image": "RuntimeError: CUDA error: no kernel image is available for execution on "
    "the device",
    "shared memory of the GPU": "triton.runtime.errors.OutOfResources: out of resource: shared "
    "memory, Required: 98304, Hardware limit: 65536.",
    "transformers too new": "AmbiguousGlobalPerLayerAttributeError: hidden_size_per_layer_input",
    "transformers too old": "ValueError: The checkpoint you are trying to load has model type "
    "`gemma4` but Transformers does not recognize this architecture.",
    "checkpoint cannot be mapped": "RuntimeError: unable to mmap 10246621918 bytes from file "
    "</m/model.safetensors>: Cannot allocate memory (12)",
    "GPU memory taken": "ValueError: Free memory on device cuda:0 (1.2/14.6 GiB) on startup is "
    "less than desired GPU memory utilization (0.9, 13.1 GiB).",
    "no room for the KV cache": "ValueError: No available memory for the cache blocks. Try "
    "increasing `gpu_memory_utilization`",
    "GPU out of memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "driver and library differ": "Failed to initialize NVML: Driver/library version mismatch",
    "driver too old": "RuntimeError: The NVIDIA driver on your system is too old; CUDA driver "
    "version is insufficient for CUDA runtime version",
    "no GPU in reach": "RuntimeError: No CUDA GPUs are available",
    "precision not on this GPU": "ValueError: Bfloat16 is only supported on GPUs with compute "
    "capability of at least 8.0. Your Tesla T4G GPU has compute capability 7.5.",
    "unknown variable": "ValueError: Unknown vLLM environment variable detected: VLLM_BACKEND",
    "unknown argument": "vllm serve: error: unrecognized arguments: --speed 9",
    "port in use": "OSError: [Errno 98] Address already in use",
    "CPU slot mapping": "RuntimeError: Boolean value of Tensor with more than one value is "
    "ambiguous",
    "shared memory of the host": "OSError: [Errno 28] No space left on device: '/psm_8f3a'",
    "NUMA library missing": "ImportError: libnuma.so.1: cannot open shared object file",
    "Python headers missing": "main.cpp:94:10: fatal error: Python.h: No such file or directory",
    "token refused": "huggingface_hub.errors.GatedRepoError: 401 Client Error. Access to model "
    "google/gemma is restricted",
    "no such model": "the hub has no google/gema, or the token may not see it: check model_source",
    "hub not reached": "downloading google/gemma broke off: ConnectError: [Errno 111] Connection "
    "refused. Run again: it goes on from there.",
    "hub asked while offline": "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach the hub",
    "checkpoint damaged": "safetensors_rust.SafetensorError: Error while deserializing header: "
    "MetadataIncompleteBuffer",
    "checkpoint not complete": "refusing to start: no *.safetensors in /m: the checkpoint is not "
    "downloaded. Run the deploy again",
    "no build": "refusing to start: no build stamp at /var/lib/vllm-g5g/build.json: vLLM is not "
    "built",
    "degenerate text": "degenerate text from http://127.0.0.1:8000: the text repeats ': ok': "
    "': ok: ok: ok: ok'",
    "engine too slow to load": "TimeoutError: Timed out waiting for engine core processes to start",
    "key refused": "http://127.0.0.1:8000 answered a chat with 401: Unauthorized",
    "compiler killed": "c++: fatal error: Killed signal terminated program cc1plus",
    "setuptools_rust missing": "ModuleNotFoundError: No module named 'setuptools_rust'",
    "compiler too old": "GCC >= 13 is required to build vLLM with CUDA (found 12.2.0).",
    "no nvcc": "/usr/local/cuda/bin/nvcc: No such file or directory",
    "tag missing": "fatal: Remote branch v0.99.0 not found in upstream origin",
    "patch refused": "error: patch failed: vllm/utils/cpu_triton_utils.py:16",
    "dependency fetch": "cannot fetch cutlass v4.7.1 from https://github.com/nvidia/cutlass.git "
    "after 4 tries: fatal: unable to access 'https://github.com/nvidia/cutlass.git/': Connection "
    "timed out. What is built was left as it is. Check the host's way out to that address, or",
    "requirements disagree": "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io",
    "disk full": "OSError: [Errno 28] No space left on device: '/opt/vllm-g5g/src/build'",
    "clock wrong": "ssl.SSLCertVerificationError: certificate is not yet valid",
    "killed for memory": "vllm.service: Failed with result 'oom-kill'.",
}


def test_each_known_failure_has_a_line_that_was_seen():
    assert {failure.name for failure in KNOWN} == SEEN.keys()


@pytest.mark.parametrize("failure", KNOWN, ids=lambda failure: failure.name)
def test_a_seen_line_is_recognised_as_what_it_is(failure):
    first = diagnose(["INFO 11-30 loading", SEEN[failure.name]], KNOWN)[0]
    assert first.failure.name == failure.name
    assert first.line == SEEN[failure.name].strip()


@pytest.mark.parametrize("failure", KNOWN, ids=lambda failure: failure.name)
def test_each_entry_is_whole(failure):
    assert re.compile(failure.pattern)
    assert min(len(failure.cause), len(failure.remedy)) > 10
    assert failure.evidence


HEALTHY = [
    "INFO Gemma4 model has heterogeneous head dimensions. FA4 not available, forcing TRITON_ATTN",
    "INFO Loading safetensors checkpoint shards: 100% Completed | 1/1",
    "INFO GPU KV cache size: 329,579 tokens",
    "INFO Application startup complete.",
    'INFO 127.0.0.1:44122 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
]


def test_nothing_is_found_in_the_log_of_a_healthy_start():
    assert diagnose(HEALTHY, KNOWN) == []


def test_cause_and_remedy_come_before_the_log():
    log = [*HEALTHY, SEEN["port in use"]]
    told = explain(log, (*SERVING, *GENERAL))
    assert told[0].startswith("cause: another process listens")
    assert told[1].startswith("remedy: `ss -ltnp`")
    assert told[2] == f"seen: {SEEN['port in use']}"
    assert told[4:] == log


def test_what_the_download_says_itself_is_known():
    gated = "the hub refused google/gemma-4: it is gated. Accept its licence with the account"
    (found,) = diagnose([gated], (*DOWNLOADING, *GENERAL))
    assert found.failure.name == "token refused"


def test_an_unknown_failure_shows_the_end_of_its_log():
    log = [f"line {number}" for number in range(100)]
    told = explain(log, BUILDING)
    assert "none of the known failures" in told[0]
    assert told[-1] == "line 99"
    assert "line 60" in told
    assert "line 59" not in told
