"""Memory bandwidth with torch alone, on a CUDA GPU or a CPU, as one JSON object.

Kernels over float32 buffers several times the last-level cache: `copy`, `write` (a fill), `scale`
(in place) and reductions, of which the fastest is the figure `read`: a reduction can be limited by
its own shape, the memory cannot. Each run is timed by the device's own events (a CPU: a monotonic
clock) and each result is checked. Figures are GB/s of 10^9 bytes that cross the memory bus: a copy,
a scale and a dot product count twice. `plain_copy_gb_per_s` is the same copy timed another way (one
interval around ten calls), so that `copy` has a witness in the same run.

    cd /usr/local/lib/vllm-g5g; /opt/pytorch/bin/python3 -B -m bench.bandwidth [--device cuda:0]
"""
