"""A container that stands in for the GPU host, and the upstreams that stand in for the network's.

Everything in it is real but the hardware: systemd is PID 1, apt verifies signatures, pip builds
the real source tree, and the model that is served answers.
"""
