"""Endpoints that answer with anything but a reply: over a plain socket, so that any bytes can be sent."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from harnesslab.errors import BackboneError, ConfigError
from harnesslab.llm import LLM, Completion, Connection, Request
from tests.llm.fake_openai import KEY

Send = Callable[[socket.socket], None]


@contextmanager
def endpoint(send: Send) -> Iterator[str]:
    """An address where ``send`` gets the connection of each request, once that has been read."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536) or b"\r\n\r\n"
            start, _, body = head.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", start)
            while length and len(body) < int(length[1]) and (more := connection.recv(65536)):
                body += more
            send(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def http(
    body: Any = b"", status: str = "200 OK", kind: str = "application/json", more: str = "", size: int = -1
) -> Send:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    length = len(data) if size < 0 else size
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + data)


def said(**message: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return {"model": "m", "choices": [choice]}


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def raw(data: bytes) -> Send:
    return lambda connection: connection.sendall(data)


def ask(url: str, key: str = KEY, **connection: Any) -> Completion:
    given = {"timeout": 5.0, "patience": 0.0, "constrain": "none", **connection}
    llm = LLM("m", url, key, connection=Connection(**given))

    async def once() -> Completion:
        try:
            return await llm.complete(Request(({"role": "user", "content": "x"},)))
        finally:
            await asyncio.sleep(0)
            llm.close()

    return asyncio.run(once())


GOOD = said(content="Action: look")
EVENTS = "".join(
    f"data: {json.dumps({'choices': [{'delta': {'content': part}, 'finish_reason': end}]})}\n\n"
    for part, end in (("Action: ", None), ("look", "stop"))
)

READ: dict[str, Send] = {
    "as text": http(GOOD, kind="text/plain"),
    "without a type": http(GOOD, kind=""),
    "with a byte order mark": http(b"\xef\xbb\xbf" + json.dumps(GOOD).encode()),
    "zipped": http(gzip.compress(json.dumps(GOOD).encode()), more="Content-Encoding: gzip\r\n"),
    "as a stream": http(EVENTS.encode() + b"data: [DONE]\n\n", kind="text/event-stream"),
    "in parts": http(said(content=[{"type": "text", "text": "Action: "}, {"type": "text", "text": "look"}])),
    "one part": http(said(content={"type": "text", "text": "Action: look"})),
    "a refusal": http(said(content=None, refusal="Action: look")),
    "counts that no database holds": http({**GOOD, "usage": {"prompt_tokens": 10**40, "completion_tokens": "a"}}),
    "junk around it": http({**GOOD, "usage": 5, "error": None, "provider": {"x": 1}, "model": ["m"]}),
}


@pytest.mark.parametrize("how", READ)
def test_a_reply_is_read_in_whatever_it_comes(how: str) -> None:
    with endpoint(READ[how]) as url:
        reply = ask(url)
    assert (reply.text, reply.tool_calls, reply.prompt_tokens, reply.completion_tokens) == ("Action: look", (), 0, 0)


LOCATION = "Location: http://no.such.host.invalid/\r\n"
BROKEN: dict[str, tuple[Send, str]] = {
    "HTML": (http(b"<html>login</html>", kind="text/html"), "garbled"),
    "HTML that says it is JSON": (http(b"<html>login</html>"), "garbled"),
    "an empty body": (http(), "garbled"),
    "204": (http(status="204 No Content"), "garbled"),
    "null": (http(b"null"), "garbled"),
    "half a reply": (http(json.dumps(GOOD).encode()[:40], size=127), "garbled"),
    "no bytes": (lambda connection: None, "garbled"),
    "a reset": (reset, "garbled"),
    "another protocol": (raw(b"SSH-2.0-OpenSSH\r\n"), "garbled"),
    "bad gzip": (http(b"xxxx", more="Content-Encoding: gzip\r\n"), "garbled"),
    "a bad chunk": (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"), "garbled"),
    "an endless header": (raw(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 2_000_000 + b"\r\n\r\n"), "garbled"),
    "not UTF-8": (http(b'{"choices":[{"message":{"content":"\xff\xfe"}}]}'), "garbled"),
    "nested deeply": (http(b'{"a":' * 100_000), "garbled"),
    "a number of 100,000 digits": (http(b'{"choices":[{"message":{"content":"x"}}],"n":' + b"9" * 100_000 + b"}"), "garbled"),
    "a text without end": (http(said(content="a" * 3_000_000)), "garbled"),
    "no choices": (http({"choices": []}), "garbled"),
    "choices null": (http({"choices": None}), "garbled"),
    "a choice of null": (http({"choices": [None]}), "garbled"),
    "a message of null": (http({"choices": [{"message": None}]}), "garbled"),
    "a stream without choices": (http(b"data: {}\n\ndata: nonsense\n\n", kind="text/event-stream"), "garbled"),
    "an error in the choice": (http({"choices": [{"error": {"code": 502, "message": "x"}, "message": {"content": ""}}]}), "server"),
    "an error with 200": (http({"error": "boom"}), "server"),
    "a status in the error": (http({"error": {"code": "429", "message": "slow down"}}), "busy"),
    "an error in a stream": (http(b'data: {"error": {"code": 401, "message": "no"}}\n\n', kind="text/event-stream"), "key"),
    "a page of 5 MB with 503": (http(b"x" * 5_000_000, "503 Unavailable", "text/html"), "server"),
    "a list with 500": (http([1, 2], "500 Error"), "server"),
    "a redirect in a circle": (http(status="307 Temporary Redirect", more="Location: /v1/chat/completions\r\n"), "unreachable"),
    "a redirect to nowhere": (http(status="307 Temporary Redirect", more=LOCATION), "unreachable"),
    "a redirect to a file": (http(status="307 Temporary Redirect", more="Location: file:///etc/passwd\r\n"), "unreachable"),
    "429 until a date in the past": (http({"error": "x"}, "429 Too Many", more="Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n"), "busy"),
    "429 without end": (http({"error": "x"}, "429 Too Many", more="Retry-After: inf\r\n"), "busy"),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_anything_else_is_one_sentence_with_its_cause(how: str) -> None:
    send, cause = BROKEN[how]
    with endpoint(send) as url, pytest.raises(BackboneError) as caught:
        ask(url)
    assert caught.value.cause == cause
    assert len(str(caught.value)) < 600 and "\n" not in str(caught.value) and url in str(caught.value)


def test_a_plain_server_behind_https_and_an_unknown_host_are_unreachable() -> None:
    with endpoint(lambda connection: None) as url:
        for address in (url.replace("http:", "https:"), "http://no.such.host.invalid/v1"):
            with pytest.raises(BackboneError) as caught:
                ask(address, timeout=1.0)
            assert caught.value.cause == "unreachable"


def test_a_server_that_hangs_from_the_start_was_reached(request_: Request) -> None:
    never = threading.Event()
    with endpoint(lambda connection: never.wait(20) and None) as url, pytest.raises(BackboneError) as caught:
        ask(url, timeout=0.5)
    never.set()
    assert caught.value.cause == "timeout"


@pytest.mark.parametrize("how", ["HTML", "an empty body", "half a reply", "no choices", "an error with 200"])
def test_what_cannot_be_read_is_asked_again_once_the_endpoint_has_answered(how: str) -> None:
    answers = [http(GOOD), BROKEN[how][0], BROKEN[how][0], http(GOOD)]
    with endpoint(lambda connection: answers.pop(0)(connection)) as url:
        llm = LLM("m", url, KEY, connection=Connection(timeout=5, patience=30, constrain="none"))

        async def twice() -> list[str]:
            request = Request(({"role": "user", "content": "x"},))
            return [(await llm.complete(request)).text for _ in range(2)]

        assert asyncio.run(twice()) == ["Action: look"] * 2
        llm.close()
    assert not answers


def test_a_pause_of_no_length_is_not_asked_without_a_pause() -> None:
    asked: list[int] = []

    def busy(connection: socket.socket) -> None:
        asked.append(1)
        http({"error": "x"}, "429 Too Many", more="Retry-After: 0\r\n")(connection)

    with endpoint(busy) as url, pytest.raises(BackboneError, match="HTTP 429"):
        ask(url, patience=2.0)
    assert 2 <= len(asked) <= 4


@pytest.mark.parametrize(
    "url", ["http://h:99999/v1", "http://h:x/v1", "http://a\n/v1", "http://[::1/v1", "ftp://x/v1", "x"]
)
def test_an_address_that_is_not_one_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="is not an HTTP URL"):
        LLM("m", url)


@pytest.mark.parametrize("key", ["sk-planted\nX-Admin: 1", "schlüssel-12345", "two words 12345"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError, match="the API key has spaces, line breaks or characters") as caught:
        LLM("m", "http://h/v1", key)
    assert key[-5:] not in str(caught.value)


def test_the_line_break_behind_a_key_from_a_file_does_not_count() -> None:
    with endpoint(http(GOOD)) as url:
        assert ask(url, KEY + "\n").text == "Action: look"


@pytest.mark.parametrize("extra", [[1], {1: 2}, {"x": object()}, {"x": {1}}, {"x": float("nan")}, {"x": "\ud800"}])
def test_fields_that_are_not_json_are_refused_at_once(extra: Any) -> None:
    with pytest.raises(ConfigError, match="LLM: extra is"):
        LLM("m", "http://h/v1", extra=extra)
