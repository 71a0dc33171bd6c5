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
PROBE_WORDS = 16
LEAST_RATE = 0.05  # tokens a word; a server that counts nonsense must not send us to infinity


def nonce() -> str:
    """Return digits that no earlier prompt began with; digits take the same tokens every time."""
    return "".join(secrets.choice("0123456789") for _ in range(NONCE_DIGITS))


def prompt(words: int, first: str = "") -> str:
    """Return `words` words of prose after `first`, and a request to go on."""
    body = " ".join(WORDS[i % len(WORDS)] for i in range(words))
    return f"{first} {body} Continue this text.".strip()


def words_for(tokens: int, count: Callable[[int], int], tries: int = 6) -> tuple[int, int]:
    """Return the words that make a prompt of about `tokens` tokens, and the tokens it has.

    `count(words)` asks the server. The rate is nearly linear, so a step or two suffice; it starts
    small, because a byte-level tokenizer makes five tokens of a word and the server has a limit.
    The shortest prompt is one of no words at all, whatever was wanted.
    """
    seen = {0: count(0)}
    last, words = 0, PROBE_WORDS
    while words not in seen and len(seen) < tries:
        seen[words] = count(words)
        rate = max((seen[words] - seen[last]) / (words - last), LEAST_RATE)
        last, words = words, max(0, words + round((tokens - seen[words]) / rate))
    best = min(seen, key=lambda known: (abs(seen[known] - tokens), known))
    return best, seen[best]
