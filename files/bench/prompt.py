"""Prompts of a wanted length in tokens, none of which a prefix cache has seen."""

import secrets
from collections.abc import Callable

# Ordinary prose, so that a real tokenizer's rate is ordinary too.
PROSE = """
The operator on call reads the report from top to bottom and asks what changed since the last run ,
which part of the machine was busy and which one waited for memory . A good answer names the
figure , how it was measured and how far two runs of the same thing lie apart .
"""
WORDS = PROSE.split()
NONCE_DIGITS = 12


def nonce() -> str:
    """Return digits that no earlier prompt began with; digits take the same tokens every time."""
    return "".join(secrets.choice("0123456789") for _ in range(NONCE_DIGITS))


def prompt(words: int, first: str = "") -> str:
    """Return `words` words of prose after `first`, and a request to go on."""
    body = " ".join(WORDS[i % len(WORDS)] for i in range(words))
    return f"{first} {body} Continue this text.".strip()


def words_for(tokens: int, count: Callable[[int], int], tries: int = 6) -> tuple[int, int]:
    """Return the words that make a prompt of about `tokens` tokens, and the tokens it has.

    `count(words)` asks the server. The rate is nearly linear, so a secant step or two suffice;
    the shortest prompt is one of no words at all, whatever was wanted.
    """
    words, have = 0, count(0)
    best = (words, have)
    rate = 1.0
    for _ in range(tries):
        step = round((tokens - have) / rate)
        if step == 0 or words + step < 0:
            break
        after = count(words + step)
        rate = max((after - have) / step, 0.05)
        words, have = words + step, after
        if abs(have - tokens) < abs(best[1] - tokens):
            best = words, have
    return best
