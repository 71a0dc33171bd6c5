"""One server as configured, on a CPU and on two GPUs, for the tests of what starts from it."""

from dataclasses import replace

from desired.serving import Server

CPU = Server(
    python="/usr/bin/python3",  # systemd-analyze looks for it on this machine
    model="/var/lib/vllm-g5g/models/tiny",
    served_name="tiny",
    address="127.0.0.1",
    port=8000,
    dtype="float16",
    kv_cache_dtype="auto",
    max_model_len=4096,
    max_num_seqs=8,
    gpus=0,
    gpu_memory_utilization=0.9,
    drain_seconds=30,
    ready_seconds=1800,
)
GPU = replace(CPU, gpus=2)
