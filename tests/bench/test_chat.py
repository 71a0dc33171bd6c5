"""The streaming client against servers that answer well, badly and not at all."""

import socket
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from files.bench.chat import (
    LINE_LIMIT,
    ChatError,
    Clock,
    Server,
    Trouble,
    chat_body,
    classify,
    complete,
    read_key,
)
from files.bench.stream import Completion, StreamError, StreamReader
from tests.bench.fake_server import (
    DONE,
    FakeServer,
    Refusal,
    delta,
    event,
    spoken,
    unused_url,
    usage,
)

HALLO = spoken(["Hal", "lo", " you"])


def ticking() -> Clock:
    """A clock that is one second later at every look."""
    seconds = iter(range(1_000_000))
    return lambda: float(next(seconds))


def ask(server: FakeServer, tokens: int = 3) -> Completion:
    client = server.client()
    return complete(client, chat_body(client, "Hello?", tokens), ticking())


def trouble(server: FakeServer) -> ChatError:
    with pytest.raises(ChatError) as caught:
        ask(server)
    return caught.value


def test_the_figures_are_the_clients_own(server: FakeServer) -> None:
    server.answer = lambda body: HALLO
    done = ask(server)
    # The clock is looked at once when sending, then once a line: an event is two lines.
    assert done.arrivals == [3.0, 5.0, 7.0]
    assert (done.text, done.tokens, done.prompt_tokens) == ("Hallo you", 3, 7)
    assert (done.ttft, done.latency, done.gaps) == (3.0, 9.0, [2.0, 2.0])
    assert done.tpot == (9.0 - 3.0) / (3 - 1)
    assert done.record()["tokens_from"] == "usage"


def test_the_request_is_greedy_and_asks_for_usage(server: FakeServer) -> None:
    ask(server, tokens=5)
    (body,) = server.requests
    assert (body["temperature"], body["max_tokens"], body["model"]) == (0, 5, "tiny")
    assert body["stream_options"] == {"include_usage": True}


def test_without_usage_the_chunks_are_counted(server: FakeServer) -> None:
    server.answer = lambda body: [delta(content="a"), delta(content="b"), delta("stop"), DONE]
    done = ask(server)
    assert (done.tokens, done.record()["tokens_from"], done.prompt_tokens) == (2, "chunks", None)


def test_reasoning_counts_as_output(server: FakeServer) -> None:
    server.answer = lambda body: [
        delta(reasoning_content="think"),
        delta(reasoning="ing"),
        delta("stop", content="!"),
        usage(7, 3),
        DONE,
    ]
    done = ask(server)
    assert (len(done.arrivals), done.reasoning, done.text) == (3, "thinking", "!")


def test_one_chunk_with_everything_has_no_decode_speed(server: FakeServer) -> None:
    server.answer = lambda body: [delta("stop", content="Hello you"), usage(7, 3), DONE]
    done = ask(server)
    assert (done.tokens, done.tpot) == (3, None)


def test_empty_chunks_and_comments_are_not_tokens(server: FakeServer) -> None:
    server.answer = lambda body: [
        b": keep-alive\n\n",
        delta(content=""),
        event({}),
        delta(content=None),
        b"event: message\nid: 1\n",
        delta(content="a"),
        delta("stop", content="b"),
        usage(7, 2),
        DONE,
    ]
    assert len(ask(server).arrivals) == 2


BROKEN = {
    "cut in the middle": ([delta(content="Hal"), delta(content="lo")], "cut after 2 chunks"),
    "nothing at all": ([], "cut after 0 chunks"),
    "only empty chunks": ([delta(content=""), delta("stop"), DONE], "without any output"),
    "not JSON": ([delta(content="a"), b"data: {oops\n\n"], "not JSON"),
    "not an object": ([b"data: 17\n\n"], "should be an object"),
    "choices of another kind": ([event({"choices": ["a"]})], "choices should hold an object"),
    "delta of another kind": ([event({"choices": [{"delta": "a"}]})], "delta should be an object"),
    "text of another kind": ([delta(content=["a"])], "text should be a string"),
    "an error in the stream": ([event({"error": {"message": "engine dead"}})], "engine dead"),
    "more chunks than tokens": (
        [delta(content="a"), delta("stop", content="b"), usage(7, 1), DONE],
        "2 chunks carried output, usage says 1 tokens",
    ),
    "a line without end": ([b"x" * (LINE_LIMIT + 1)], "cut after 0 chunks"),
}


@pytest.mark.parametrize(("chunks", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_stream_is_named(server: FakeServer, chunks: list[bytes], message: str) -> None:
    server.answer = lambda body: chunks
    error = trouble(server)
    assert error.trouble is Trouble.BROKEN
    assert message in str(error)


def test_a_connection_cut_in_the_stream_keeps_what_came(server: FakeServer) -> None:
    server.cuts_streams = True
    server.answer = lambda body: [delta(content="Hal"), delta(content="lo")]
    error = trouble(server)
    assert error.trouble is Trouble.BROKEN
    assert error.partial is not None
    assert error.partial.text == "Hallo"


REFUSALS = {
    "busy": (429, {"error": {"message": "Too many"}}, Trouble.BUSY),
    "starting": (503, {"detail": "loading"}, Trouble.BUSY),
    "wrong model": (404, {"error": {"message": "The model `x` does not exist."}}, None),
    "too long": (400, {"message": "maximum context length is 4096 tokens"}, Trouble.INFEASIBLE),
    "bad request": (400, {"error": "temperature"}, Trouble.REFUSED),
    "dead engine": (500, "EngineDeadError", Trouble.REFUSED),
}


@pytest.mark.parametrize(("status", "body", "kind"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_carries_the_servers_words(
    server: FakeServer, status: int, body: object, kind: Trouble | None
) -> None:
    server.answer = lambda _: Refusal(status, body)
    error = trouble(server)
    assert error.trouble is (kind or Trouble.NO_SUCH_MODEL)
    assert f"HTTP {status} for model tiny" in str(error)
    assert any(word in str(error) for word in ("Too", "loading", "exist", "maximum", "temp", "Eng"))


def test_a_wrong_or_missing_key_is_unauthorized_and_never_shown(server: FakeServer) -> None:
    server.accepted = {"Bearer right"}
    assert trouble(server).trouble is Trouble.UNAUTHORIZED
    client = server.client(api_key="wrong")
    with pytest.raises(ChatError) as caught:
        complete(client, chat_body(client, "Hello?", 3))
    assert caught.value.trouble is Trouble.UNAUTHORIZED
    assert "wrong" not in f"{caught.value} {client!r}"
    right = server.client(api_key="right")
    assert complete(right, chat_body(right, "Hello?", 3)).tokens == 3


def test_no_server_is_unreachable() -> None:
    client = Server(unused_url(), "tiny")
    with pytest.raises(ChatError, match="Is the server up") as caught:
        complete(client, chat_body(client, "Hello?", 3))
    assert caught.value.trouble is Trouble.UNREACHABLE


def test_an_answer_that_never_ends_is_given_up(server: FakeServer) -> None:
    server.answer = lambda body: [delta(content="on ")] * 100
    error = trouble(server)  # the clock ticks a second a line, and the limit is 30
    assert error.trouble is Trouble.TIMEOUT
    assert error.partial is not None
    assert error.partial.tokens < 20


def test_something_other_than_http_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        greeter = Thread(target=greet)
        greeter.start()
        client = Server(f"http://127.0.0.1:{port}", "tiny", timeout=30)
        with pytest.raises(ChatError, match="does not speak HTTP") as caught:
            complete(client, chat_body(client, "Hello?", 3))
        greeter.join()
    assert caught.value.trouble is Trouble.BROKEN


def test_a_key_file_may_be_bare_or_an_environment_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    for content in ("s3cret=\n", "# made here\nVLLM_API_KEY=s3cret=\n", 'VLLM_API_KEY="s3cret="\n'):
        path.write_text(content)
        assert read_key(str(path)) == "s3cret="
    assert read_key(None) is None


@given(st.integers(400, 599), st.text())
def test_every_refusal_is_one_kind_of_trouble(status: int, words: str) -> None:
    assert isinstance(classify(status, words), Trouble)


@given(st.lists(st.one_of(st.binary(max_size=80), st.sampled_from(HALLO)), max_size=20))
def test_garbage_is_a_stream_error_or_nothing(lines: list[bytes]) -> None:
    reader = StreamReader(0.0)
    try:
        for at, line in enumerate(lines):
            reader.feed(line, float(at))
    except StreamError:
        return
    assert reader.completion.latency <= len(lines)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=50))
def test_text_comes_through_whole_and_tpot_times_tokens_is_the_decode_time(
    words: list[str],
) -> None:
    reader = StreamReader(0.0)
    for at, chunk in enumerate(spoken(words)):
        reader.feed(chunk, float(at))
    done = reader.completion
    assert done.text == "".join(words)
    assert done.tpot is not None
    assert done.ttft is not None
    assert done.tpot * (done.tokens - 1) == pytest.approx(done.latency - done.ttft)
