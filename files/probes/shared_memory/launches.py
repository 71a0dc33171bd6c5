"""The launches that serving Gemma 4 makes, and what vLLM is given to make them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

QUERY_HEADS = 8  # of a Gemma 4 E model, on one KV head
PAGE = 16  # tokens in a block of the KV cache
SEGMENTS = 16  # parallel parts of a decode, vLLM's NUM_PAR_SOFTMAX_SEGMENTS


@dataclass(frozen=True)
class Launch:
    """One call of the attention: two sequences, all with heads of the same size.

    + window: tokens that a sliding layer sees; None for a layer that sees all
    + query_lengths, context_lengths: tokens of each sequence that are new, and in all
    """

    head: int
    phase: str
    window: int | None
    query_lengths: tuple[int, ...]
    context_lengths: tuple[int, ...]


def gemma4() -> Iterator[Launch]:
    """Yield prefill and decode of Gemma 4's global (512) and sliding (256) layers.

    The second sequence is longer than the window, so that the window cuts something off.
    """
    for head, window in ((512, None), (256, 512)):
        yield Launch(head, "prefill", window, (19, 3), (19, 560))
        yield Launch(head, "decode", window, (1, 1), (33, 600))


def arguments(launch: Launch, dtype: torch.dtype, device: str) -> dict[str, Any]:
    """Return keyword arguments of vLLM's `unified_attention`, random but the same every time."""
    generator = torch.Generator().manual_seed(launch.head + len(launch.phase))
    sequences, tokens = len(launch.query_lengths), sum(launch.query_lengths)
    pages = -(-max(launch.context_lengths) // PAGE)
    blocks = sequences * pages

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(dtype).to(device)

    def integers(values: list[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    starts = [sum(launch.query_lengths[:index]) for index in range(sequences + 1)]
    shuffled = torch.randperm(blocks, generator=generator).to(torch.int32).to(device)
    return {
        "q": random(tokens, QUERY_HEADS, launch.head),
        "k": random(blocks, PAGE, 1, launch.head),
        "v": random(blocks, PAGE, 1, launch.head),
        "out": torch.zeros(tokens, QUERY_HEADS, launch.head, dtype=dtype, device=device),
        "cu_seqlens_q": integers(starts),
        "seqused_k": integers(list(launch.context_lengths)),
        "block_table": shuffled.reshape(sequences, pages),
        **_numbers(launch),
        **_decode_scratch(launch, sequences, device),
    }


def _numbers(launch: Launch) -> dict[str, Any]:
    return {
        "max_seqlen_q": max(launch.query_lengths),
        "max_seqlen_k": max(launch.context_lengths),
        "softmax_scale": launch.head**-0.5,
        "causal": True,
        "window_size": (-1, -1) if launch.window is None else (launch.window - 1, 0),
        "softcap": 0.0,
        **dict.fromkeys(("q_descale", "k_descale", "v_descale")),
    }


def _decode_scratch(launch: Launch, rows: int, device: str) -> dict[str, Any]:
    """Return the buffers whose presence makes vLLM split a decode over several programs."""
    shape = (rows, QUERY_HEADS, SEGMENTS)
    return {
        "seq_threshold_3D": rows,
        "num_par_softmax_segments": SEGMENTS,
        "softmax_segm_output": torch.zeros(*shape, launch.head, device=device),
        "softmax_segm_max": torch.zeros(*shape, device=device),
        "softmax_segm_expsum": torch.zeros(*shape, device=device),
    }
