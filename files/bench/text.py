"""Judge generated text: a server can be healthy, fast, and talk nonsense."""

import re

REPLACEMENT = "�"
SHOWN = 200  # characters of a text quoted in a complaint
# A unit of up to 20 characters, six times in a row: `: ok: ok: ok: ok: ok: ok`.
REPEATED = re.compile(r"(?P<unit>.{1,20}?)(?P=unit){5,}", re.DOTALL)
REPEATED_SHARE = 0.5  # of the text; a table's dashes or an indented list stays below


def degenerate(text: str) -> str | None:
    """Say why `text` is not language, or return None."""
    if not text.strip():
        return "the text is empty"
    if REPLACEMENT in text:
        return f"the text holds {text.count(REPLACEMENT)} replacement characters: {quote(text)}"
    repeated = max((m for m in REPEATED.finditer(text)), key=lambda m: len(m[0]), default=None)
    if repeated and len(repeated[0]) > REPEATED_SHARE * len(text):
        return f"the text repeats {repeated['unit']!r}: {quote(text)}"
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
