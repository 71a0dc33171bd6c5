"""Do the attention kernels of a vLLM source tree fit the GPU's shared memory, and compute right?"""
