"""Counters from a metrics page."""

from hypothesis import given
from hypothesis import strategies as st

from files.bench.metrics import counter, hit_rate

METRICS = """# HELP vllm:prefix_cache_hits_total hits
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="a b"} 12.0
vllm:prefix_cache_hits_total{engine="1",model_name="a b"} 3.0
vllm:prefix_cache_hits_total_created{engine="0"} 1.7e9
"""


def test_counters_are_summed_over_labels() -> None:
    assert counter(METRICS, "vllm:prefix_cache_hits_total") == 15.0
    assert counter(METRICS, "vllm:prefix_cache") is None
    assert hit_rate([0.0, 0.0], [100.0, 25.0]) == 0.25
    assert hit_rate([None, 0.0], [100.0, 25.0]) is None
    assert hit_rate([5.0, 5.0], [5.0, 5.0]) is None


@given(st.text())
def test_any_metrics_page_is_read_without_a_crash(page: str) -> None:
    assert counter(page, "a") is None or isinstance(counter(page, "a"), float)
