"""What is language and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.bench.text import degenerate, unexpected

SENTENCE = "Site reliability engineering is the practice of keeping systems up."
LANGUAGE = {
    "one word": "Paris.",
    "a sentence": SENTENCE,
    "cut short": "The capital of France is",
    "cut within a character": "東京は日本の首都です\ufffd",
    "short, and cut within a character": "東京\ufffd",
    "a list": "- one\n- two\n- three\n- four\n- five",
    "a table": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "another script": "東京は日本の首都です。",
    "a rhyme": "Row, row, row your boat, gently down the stream.",
    "a drawn-out word": "Hmmmmmm",
}
NO_LANGUAGE = {
    "empty": ("", "empty"),
    "blank": (" \n ", "empty"),
    "the endpoint that is broken on a real host": (": ok: ok: ok: ok: ok", "repeats ': ok'"),
    "one character": ("!!!!!!!!!!!!", "repeats '!'"),
    "one word": ("the the the the the the the", "repeats"),
    "a beginning, then one word": ("Hmmmm. " + "the " * 20, "repeats ' the'"),
    "undecodable": ("\ufffd\ufffd\ufffd a \ufffd", "3 replacement characters"),
    "few words shuffled": ("a b a a b b a b a b b a a b a b", "2 different words in 16"),
}


@pytest.mark.parametrize("text", LANGUAGE.values(), ids=LANGUAGE)
def test_language_is_let_through(text: str) -> None:
    assert degenerate(text) is None


@pytest.mark.parametrize(("text", "said"), NO_LANGUAGE.values(), ids=NO_LANGUAGE)
def test_what_is_no_language_is_named(text: str, said: str) -> None:
    assert said in (degenerate(text) or "")


@given(st.text(min_size=1, max_size=12).filter(str.strip), st.integers(12, 40))
def test_whatever_is_repeated_often_is_no_language(unit: str, times: int) -> None:
    assert degenerate(unit * times)


@given(st.text())
def test_every_text_is_judged(text: str) -> None:
    reason = degenerate(text)
    assert reason is None or reason.startswith("the text ")


def test_an_answer_beside_the_question_is_named_and_shown() -> None:
    assert unexpected(SENTENCE, "RELIAB") is None
    assert unexpected("I like trains.", "reliab") == (
        "the answer does not match 'reliab': 'I like trains.'"
    )
