"""Prompts of a wanted length."""

from hypothesis import given
from hypothesis import strategies as st

from files.bench.prompt import words_for


@given(st.integers(1, 60), st.floats(0.6, 6), st.integers(70, 4000), st.integers(0, 1_000_000_000))
def test_prompts_come_out_at_the_wanted_length(
    template: int, rate: float, wanted: int, jitter: int
) -> None:
    asked: list[int] = []

    def count(words: int) -> int:
        asked.append(words)
        return template + round(words * rate + (words * jitter) % 3)

    words, tokens = words_for(wanted, count)
    assert tokens == template + round(words * rate + (words * jitter) % 3)
    assert abs(tokens - wanted) <= rate + 4
    assert len(asked) <= 6
