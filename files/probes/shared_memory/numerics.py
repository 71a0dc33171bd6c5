"""Run the launches and compare them with attention written in plain torch, in float32.

With TRITON_INTERPRET=1 they run on the CPU, slowly, operation by operation; else on the GPU.
TRITON_OVERRIDE_ARCH=sm75 makes a newer GPU run what Triton makes of them for 7.5.
"""

from collections.abc import Callable
from typing import Any, TypedDict

import torch
import triton

from .launches import PAGE, Launch, arguments


class Compared(TypedDict):
    """How far a launch is from plain torch: the largest error, and the error's relative norm.

    `shared` has the bytes per block of the attention kernel that ran; None where interpreted.
    """

    head: int
    phase: str
    largest_error: float
    relative_error: float
    shared: int | None


class Observed:
    """Takes a kernel's place: launches it, and keeps how much shared memory it took."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self.shared: int | None = None

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(**parameters: Any) -> None:
            compiled = self._kernel[grid](**parameters)
            self.shared = None if compiled is None else compiled.metadata.shared

        return launch


def compare(module: Any, launch: Launch, device: str) -> Compared:
    """Run a launch in float16 on "cpu" (interpreted) or "cuda"; return its distance."""
    if device == "cuda":
        triton.runtime.driver.reset_active()  # from one that only compiles
    given = arguments(launch, torch.float16, device)
    kernel = module.kernel_unified_attention
    module.kernel_unified_attention = observed = Observed(kernel)
    try:
        module.unified_attention(**given)
    finally:
        module.kernel_unified_attention = kernel
    wanted = plain_attention(launch, given)
    error = given["out"].float() - wanted
    return {
        "head": launch.head,
        "phase": launch.phase,
        "largest_error": float(error.abs().max()),
        "relative_error": float(error.norm() / wanted.norm()),
        "shared": observed.shared,
    }


def plain_attention(launch: Launch, given: dict[str, Any]) -> torch.Tensor:
    """Return the attention of a launch: (tokens, heads, head size), float32."""
    outputs = []
    for index, (new, total) in enumerate(
        zip(launch.query_lengths, launch.context_lengths, strict=True)
    ):
        start = int(given["cu_seqlens_q"][index])
        query = given["q"][start : start + new].float()
        pages = given["block_table"][index, : -(-total // PAGE)].long()
        keys = given["k"][pages].flatten(0, 1)[:total, 0].float()
        values = given["v"][pages].flatten(0, 1)[:total, 0].float()
        scores = torch.einsum("qhd,kd->hqk", query, keys) * given["softmax_scale"]
        scores.masked_fill_(~_visible(new, total, launch.window, keys.device), float("-inf"))
        outputs.append(torch.einsum("hqk,kd->qhd", scores.softmax(-1), values))
    return torch.cat(outputs)


def _visible(new: int, total: int, window: int | None, device: torch.device) -> torch.Tensor:
    """Return which keys each of the last `new` tokens of `total` sees."""
    position = torch.arange(total - new, total, device=device)[:, None]
    key = torch.arange(total, device=device)[None, :]
    seen = key <= position
    return seen if window is None else seen & (key > position - window)
