"""Judge generated text: a server can be healthy, fast, and talk nonsense."""

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
REPLACEMENT_SHARE = 0.1  # of the text, but for one at its end
SHOWN = 200  # characters of a text quoted in a complaint
# A group of up to 24 characters, four times in a row: `: ok: ok: ok: ok`, of a broken endpoint.
REPEATED = re.compile(r"(?P<unit>.{1,24}?)(?P=unit){3,}", re.DOTALL)
REPEATED_SHARE = 0.5  # of the text; a table's dashes or an indented list stays below
REPEATED_CHARACTERS = 8  # at least; "Hmmmm" is an answer
FEW_WORDS, DIFFERENT_SHARE = 12, 0.25  # from so many words on, so many are different in language


def degenerate(text: str) -> str | None:
    """Say why `text` is not language, or return None. One word is, and a text that is cut short."""
    stripped = text.strip()
    if not stripped:
        return "the text is empty"
    # The last token may have cut a character in two, and a text can be as short as one word.
    broken = stripped[:-1].count(REPLACEMENT)
    if broken > REPLACEMENT_SHARE * len(stripped):
        return f"the text holds {broken} replacement characters: {quote(text)}"
    repeated = max(REPEATED.finditer(stripped), key=lambda m: len(m[0]), default=None)
    least = max(REPEATED_CHARACTERS, REPEATED_SHARE * len(stripped))
    if repeated and len(repeated[0]) >= least:
        return f"the text repeats {repeated['unit']!r}: {quote(text)}"
    words = re.findall(r"\w+", stripped.lower())
    different = len(set(words))
    if len(words) >= FEW_WORDS and different <= DIFFERENT_SHARE * len(words):
        return f"the text has {different} different words in {len(words)}: {quote(text)}"
    return None


def unexpected(text: str, pattern: str) -> str | None:
    """Say why `text` does not answer as `pattern` wants, or return None."""
    if reason := degenerate(text):
        return reason
    if not re.search(pattern, text, re.IGNORECASE | re.DOTALL):
        return f"the answer does not match {pattern!r}: {quote(text)}"
    return None


def quote(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")
