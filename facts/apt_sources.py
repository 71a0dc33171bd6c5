"""The two formats of apt's source lists, read and rewritten: sources.list(5).

A `.list` file has one source a line. A `.sources` file has stanzas of fields, where one stanza may
name several URIs.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_LINE = re.compile(r"\s*(deb|deb-src)\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<rest>[^#]*)")
_URIS = re.compile(r"^uris:.*\n?(?:[ \t].*\n?)*", re.IGNORECASE | re.MULTILINE)
_TRUE = {"yes", "true", "with", "on", "enable", "1"}


@dataclass(frozen=True)
class Source:
    """One enabled source: a URI and a suite, and the key that signs it (None: any trusted key)."""

    uri: str
    suite: str
    signed_by: str | None = None


def parse(path: str, text: str) -> list[Source]:
    """Return the enabled sources of one file, in the format that its name says."""
    if path.endswith(".sources"):
        return [source for stanza in _stanzas(text) for source in _of_stanza(stanza)]
    return [source for line in text.splitlines() for source in _of_line(line)]


def without(path: str, text: str, unwanted: Callable[[str], bool]) -> str:
    """Return the file without each source whose URI is `unwanted`; empty where nothing is left.

    What remains is byte for byte what it was, but for stanzas that lose one of several URIs.
    """
    kept = (
        _stanzas_without(text, unwanted)
        if path.endswith(".sources")
        else "".join(
            line
            for line in text.splitlines(keepends=True)
            if not any(unwanted(source.uri) for source in _of_line(line))
        )
    )
    return kept if parse(path, kept) or kept == text else ""


def _of_line(line: str) -> Iterator[Source]:
    match = _LINE.match(line)
    if match is None or len(words := match["rest"].split()) < 2:
        return
    options = {
        key.lower(): value
        for key, _, value in (word.partition("=") for word in (match["options"] or "").split())
    }
    yield Source(words[0], words[1], options.get("signed-by"))


def _stanzas(text: str) -> list[str]:
    """Split where a line follows a blank one; joined again, the stanzas give the text."""
    stanzas: list[str] = []
    after_blank = True
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        blank = not line.strip()
        if (after_blank and not blank) or not stanzas:
            stanzas.append("")
        stanzas[-1] += line
        after_blank = blank
    return stanzas


def _of_stanza(stanza: str) -> Iterator[Source]:
    fields = _fields(stanza)
    if fields.get("enabled", "yes").lower() not in _TRUE:
        return
    signed_by = fields.get("signed-by")
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield Source(uri, suite, signed_by)


def _fields(stanza: str) -> dict[str, str]:
    """Return the fields of a stanza, names in lower case, continuation lines joined."""
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t"):
            fields[name] = f"{fields.get(name, '')}\n{line.strip()}".strip()
        elif ":" in line:
            name, value = line.split(":", 1)
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _stanzas_without(text: str, unwanted: Callable[[str], bool]) -> str:
    kept = []
    for stanza in _stanzas(text):
        uris = _fields(stanza).get("uris", "").split()
        good = [uri for uri in uris if not unwanted(uri)]
        if good == uris:
            kept.append(stanza)
        elif good:
            kept.append(_with_uris(stanza, good))
    return "".join(kept)


def _with_uris(stanza: str, uris: list[str]) -> str:
    line = f"URIs: {' '.join(uris)}\n"
    return _URIS.sub(lambda _: line, stanza)
