"""Compile the launches for a GPU that need not be there, and read how much shared memory they take.

Triton asks a driver object which GPU to compile for. Ours names one; `warmup` then compiles
without launching, and the compiler's metadata says how many bytes a block needs.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypedDict

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from .launches import Launch, arguments
from .source import Capability

KERNELS = ("kernel_unified_attention", "reduce_segments")


class Compiled(TypedDict):
    """One kernel of one launch; `shared` is bytes per block, `ptx` the digest of its code."""

    head: int
    phase: str
    kernel: str
    block_m: int | None
    tile: int
    shared: int
    ptx: str


class TargetOnly(DriverBase):  # type: ignore[misc]  # triton has no type information
    """A driver that knows what to compile for and cannot run anything."""

    def __init__(self, capability: Capability) -> None:
        super().__init__()
        self._target = GPUTarget("cuda", capability.to_int(), 32)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return -1  # what is compiled is kept by device; no real one has this number

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise LookupError("this driver launches nothing")

    def get_benchmarker(self) -> Callable[..., Any]:
        raise LookupError("this driver launches nothing")


class Recorder:
    """Takes a kernel's place: `recorder[grid](...)` compiles what would have been launched."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.calls: list[tuple[dict[str, Any], Any]] = []  # parameters, Triton's compiled kernel

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def compile_only(**parameters: Any) -> None:
            self.calls.append((parameters, self._kernel.warmup(grid=grid, **parameters)))

        return compile_only


def measure(module: Any, launch: Launch, capability: Capability) -> list[Compiled]:
    """Return what each kernel of a launch needs, compiled for that compute capability.

    Afterwards Triton can launch nothing until its driver is reset.
    """
    kernels = {name: getattr(module, name) for name in KERNELS}
    recorders = {name: Recorder(kernel) for name, kernel in kernels.items()}
    triton.runtime.driver.set_active(TargetOnly(capability))
    vars(module).update(recorders)
    try:
        module.unified_attention(**arguments(launch, torch.float16, "cpu"))
    finally:
        vars(module).update(kernels)
    return [
        _described(launch, name, parameters, compiled)
        for name, recorder in recorders.items()
        for parameters, compiled in recorder.calls
    ]


def _described(launch: Launch, name: str, parameters: dict[str, Any], compiled: Any) -> Compiled:
    return {
        "head": launch.head,
        "phase": launch.phase,
        "kernel": name,
        "block_m": parameters.get("BLOCK_M"),
        "tile": parameters["TILE_SIZE"],
        "shared": compiled.metadata.shared,
        "ptx": hashlib.sha256(compiled.asm["ptx"].encode()).hexdigest(),
    }
