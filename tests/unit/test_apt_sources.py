"""apt's two source formats: what is read, and what stays when a source is taken out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.apt_sources import Source, parse, without

CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/sbsa/"
DEBIAN = "http://mirror.example/debian"

LISTS = {
    "plain": (f"deb {DEBIAN} bookworm main\n", [Source(DEBIAN, "bookworm")]),
    "signed": (
        f"deb [arch=arm64 Signed-By=/k.gpg] {CUDA} / # comment\n",
        [Source(CUDA, "/", "/k.gpg")],
    ),
    "blanks in options": (f"deb [ signed-by=/k.gpg ] {CUDA} /", [Source(CUDA, "/", "/k.gpg")]),
    "source packages": (f"deb-src {DEBIAN} sid main", [Source(DEBIAN, "sid")]),
    "commented out": (f"# deb {CUDA} /\n", []),
    "empty": ("", []),
    "cut short": (f"deb {CUDA}\n", []),
}
STANZAS = {
    "two URIs, two suites": (
        f"Types: deb\nURIs: {DEBIAN} {CUDA}\nSuites: a b\nComponents: main\n",
        [Source(DEBIAN, "a"), Source(DEBIAN, "b"), Source(CUDA, "a"), Source(CUDA, "b")],
    ),
    "disabled": (f"Types: deb\nURIs: {CUDA}\nSuites: /\nEnabled: no\n", []),
    "continued field": (f"types: deb\nuris:\n {CUDA}\nsuites: /\n", [Source(CUDA, "/")]),
    "key inline": (
        f"URIs: {CUDA}\nSuites: /\nSigned-By:\n -----BEGIN\n .\n abc\n",
        [Source(CUDA, "/", "-----BEGIN\n.\nabc")],
    ),
    "two stanzas": (
        f"URIs: {CUDA}\nSuites: /\n\n# why\nURIs: {DEBIAN}\nSuites: sid\n",
        [Source(CUDA, "/"), Source(DEBIAN, "sid")],
    ),
}


@pytest.mark.parametrize(("text", "sources"), LISTS.values(), ids=LISTS)
def test_a_list_is_read(text, sources):
    assert parse("/etc/apt/sources.list.d/x.list", text) == sources


@pytest.mark.parametrize(("text", "sources"), STANZAS.values(), ids=STANZAS)
def test_a_sources_file_is_read(text, sources):
    assert parse("/etc/apt/sources.list.d/x.sources", text) == sources


def of_cuda(uri):
    return "/compute/cuda/repos/" in uri


REMOVALS = {
    "alone": ("x.list", f"# NVIDIA\ndeb {CUDA} /\n", ""),
    "among others": (
        "x.list",
        f"deb {CUDA} /\n# keep\ndeb {DEBIAN} sid main\n",
        f"# keep\ndeb {DEBIAN} sid main\n",
    ),
    "not there": ("x.list", f"deb {DEBIAN} sid main\n", f"deb {DEBIAN} sid main\n"),
    "a stanza": (
        "x.sources",
        f"URIs: {CUDA}\nSuites: /\n\nURIs: {DEBIAN}\nSuites: sid\n",
        f"URIs: {DEBIAN}\nSuites: sid\n",
    ),
    "one URI of a stanza": (
        "x.sources",
        f"Types: deb\nURIs: {CUDA}\n {DEBIAN}\nSuites: sid\n",
        f"Types: deb\nURIs: {DEBIAN}\nSuites: sid\n",
    ),
}


@pytest.mark.parametrize(("name", "text", "left"), REMOVALS.values(), ids=REMOVALS)
def test_a_source_is_taken_out(name, text, left):
    assert without(name, text, of_cuda) == left


words = st.text("abcdefghijklmnopqrstuvwxyz0123456789-./:", min_size=1, max_size=20)
entries = st.builds(Source, words, words, st.none() | words)


def as_line(source):
    signed = f"[signed-by={source.signed_by}] " if source.signed_by else ""
    return f"deb {signed}{source.uri} {source.suite} main\n"


def as_stanza(source):
    signed = f"Signed-By: {source.signed_by}\n" if source.signed_by else ""
    return f"Types: deb\nURIs: {source.uri}\nSuites: {source.suite}\n{signed}\n"


@given(st.lists(entries))
def test_reading_inverts_writing(sources):
    assert parse("a.list", "".join(map(as_line, sources))) == sources
    assert parse("a.sources", "".join(map(as_stanza, sources))) == sources


@given(st.lists(entries), st.sets(words))
def test_exactly_the_unwanted_sources_go(sources, unwanted):
    kept = [source for source in sources if source.uri not in unwanted]
    for name, render in (("a.list", as_line), ("a.sources", as_stanza)):
        text = without(name, "".join(map(render, sources)), unwanted.__contains__)
        assert parse(name, text) == kept


@given(st.sampled_from(["a.list", "a.sources"]), st.text())
def test_any_text_is_read_and_kept_when_nothing_is_unwanted(name, text):
    parse(name, text)
    assert without(name, text, lambda _: False) == text
