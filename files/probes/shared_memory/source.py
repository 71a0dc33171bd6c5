"""Load the attention kernels of a vLLM source tree without installing or importing vLLM.

The file of the kernels is run as it is. What it imports from elsewhere in vLLM is replaced, since
all of vLLM would come along with it: a handful of names, and the platform, which says here that it
is CUDA of whatever compute capability is asked about.
"""

import ast
import enum
import importlib
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

KERNELS = "vllm.v1.attention.ops.triton_unified_attention"


class Capability(NamedTuple):
    """A compute capability; 7.5 is (7, 5)."""

    major: int
    minor: int

    def to_int(self) -> int:
        """Return it as vLLM counts: 75."""
        return self.major * 10 + self.minor


class Platform:
    """Stands for `vllm.platforms.current_platform`; what the kernels do not ask is not there."""

    def __init__(self, capability: Capability) -> None:
        self._capability = capability

    def is_cuda(self) -> bool:
        return True

    def get_device_capability(self) -> Capability:
        return self._capability

    def is_device_capability_family(self, capability: int) -> bool:
        return self._capability.to_int() // 10 == capability // 10

    def fp8_dtype(self) -> torch.dtype:
        return torch.float8_e4m3fn


class Logger(logging.Logger):
    """Has the one method that vLLM adds and the kernels use."""

    debug_once = logging.Logger.debug


def load(tree: Path, capability: Capability) -> Any:
    """Return the module of the kernels, on a platform of that capability.

    One process can load one tree only: Triton's kernels and Python's modules are both global.
    """
    package = ModuleType("vllm")
    package.__path__ = [str(tree / "vllm")]
    replaced = {
        "vllm": package,
        "vllm.envs": _module("vllm.envs", VLLM_BATCH_INVARIANT=False),
        "vllm.logger": _module("vllm.logger", init_logger=Logger),
        "vllm.platforms": _module("vllm.platforms", current_platform=Platform(capability)),
        "vllm.triton_utils": _module("vllm.triton_utils", triton=triton, tl=tl),
        "vllm.v1.kv_cache_interface": _module(
            "vllm.v1.kv_cache_interface", KVQuantMode=_quantization_modes(tree)
        ),
    }
    sys.modules.update(replaced)
    for name, module in replaced.items():
        parent, _, child = name.rpartition(".")
        if parent == "vllm":
            setattr(package, child, module)
    return importlib.import_module(KERNELS)


def _module(name: str, **content: object) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(content)
    return module


def _quantization_modes(tree: Path) -> Any:
    """Return the tree's own KVQuantMode; the module that has it imports far more."""
    path = tree / "vllm" / "v1" / "kv_cache_interface.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == "KVQuantMode":
            names: dict[str, Any] = {"IntEnum": enum.IntEnum}
            code = compile(ast.Module([node], []), str(path), "exec", dont_inherit=True)
            exec(code, names)
            return names["KVQuantMode"]
    raise LookupError(f"{path} has no class KVQuantMode: this probe does not know that version")
