"""Attention fits a T4G's shared memory with the tile clamp, and computes what it did.

The released kernels are compiled for compute capability 7.5 and 8.0 by Triton 3.7.0, the one that
torch 2.12.0 requires, on a machine that needs no GPU.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from files.probes.shared_memory.verdict import TOLERANCE
from tests.versions.released import each
from upkeep.prove import LIMIT, ProbeFailed, Proof, probe, prove
from versions import SUPPORTED

pytestmark = pytest.mark.sm75
BY_DEFAULT = ("0.33.0",)  # the newest; each costs 45 s of CPU time

# head, phase, kernel -> (tile, bytes per block) on 7.5, unpatched. The clamp changes the first.
STOCK = {
    (512, "prefill", "kernel_unified_attention"): (32, 98304),
    (512, "decode", "kernel_unified_attention"): (16, 65536),
    (512, "decode", "reduce_segments"): (16, 0),
    (256, "prefill", "kernel_unified_attention"): (32, 49152),
    (256, "decode", "kernel_unified_attention"): (16, 32768),
    (256, "decode", "reduce_segments"): (16, 2048),
}
PATCHED = {**STOCK, (512, "prefill", "kernel_unified_attention"): (16, 65536)}


@pytest.fixture(scope="module", params=each(*BY_DEFAULT))
def proof(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Proof:
    return prove(SUPPORTED[request.param], tmp_path_factory.mktemp("proof"))


def _key(kernel: dict[str, Any]) -> tuple[int, str, str]:
    return kernel["head"], kernel["phase"], kernel["kernel"]


def _sizes(kernels: list[dict[str, Any]]) -> dict[tuple[int, str, str], tuple[int, int]]:
    return {_key(kernel): (kernel["tile"], kernel["shared"]) for kernel in kernels}


def test_stock_prefill_of_a_head_of_512_does_not_fit(proof: Proof) -> None:
    assert proof.triton == "3.7.0"
    assert _sizes(proof.stock) == STOCK
    assert max(shared for _, shared in STOCK.values()) > LIMIT


def test_patched_every_launch_fits(proof: Proof) -> None:
    assert _sizes(proof.patched) == PATCHED
    assert max(shared for _, shared in PATCHED.values()) <= LIMIT


def test_the_sizes_follow_the_rule_that_the_clamp_computes(proof: Proof) -> None:
    for kernel in proof.stock + proof.patched:
        if kernel["kernel"] == "kernel_unified_attention":
            assert kernel["shared"] == (kernel["block_m"] + kernel["tile"]) * kernel["head"] * 4


def test_no_other_launch_changes_by_a_byte_of_code(proof: Proof) -> None:
    before, after = (
        {_key(kernel): kernel["ptx"] for kernel in kernels}
        for kernels in (proof.stock, proof.patched)
    )
    assert {key for key in before if before[key] != after[key]} == {
        (512, "prefill", "kernel_unified_attention")
    }


def test_on_ampere_the_code_is_the_same(proof: Proof) -> None:
    assert proof.stock_ampere == proof.patched_ampere
    assert len(proof.stock_ampere) == len(STOCK)


def test_stock_and_patched_agree_with_plain_torch(proof: Proof) -> None:
    assert len(proof.patched_errors) == 4  # prefill and decode at two head sizes
    for error in proof.stock_errors + proof.patched_errors:
        assert 0 < error["relative_error"] < TOLERANCE


def test_the_proof_holds_and_says_so(proof: Proof) -> None:
    assert list(proof.faults()) == []
    table = "\n".join(proof.table())
    assert "TILE 32 98,304 over" in table
    assert "CHANGED" not in table


def test_a_patched_version_that_does_not_hold_is_told_in_words() -> None:
    kernel = {"head": 512, "phase": "prefill", "kernel": "k", "tile": 32, "shared": 98304}
    error = {"head": 512, "phase": "decode", "relative_error": float("nan")}
    broken = Proof(
        *(SUPPORTED["0.33.0"], "3.7.0"),
        *([kernel], [kernel], [kernel], [{**kernel, "tile": 16}]),
        *([error], [error]),
    )
    assert list(broken.faults()) == [
        "head 512 prefill takes 98,304 bytes of 65,536 a block",
        "head 512 decode is nan from plain torch, over 1e-03",
        "the patch changes what is compiled for 8.0",
    ]
    assert "CHANGED" in "\n".join(broken.table())
    assert (
        list(replace(broken, patched=[], patched_ampere=[kernel], patched_errors=[]).faults()) == []
    )


def test_a_proof_names_the_source_that_it_was_made_on() -> None:
    lists: list[list[dict[str, Any]]] = [[], [], [], [], [], []]
    tag_only = Proof(SUPPORTED["0.27.2rc0"], "3.7.0", *lists)
    assert next(tag_only.table()).startswith("vLLM 0.27.2rc0 (on the source of 0.27.1), Triton")


def test_a_tree_that_the_probe_does_not_know_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProbeFailed, match=r"kv_cache_interface\.py"):
        probe(tmp_path)
