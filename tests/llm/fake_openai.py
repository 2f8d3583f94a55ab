"""A small server that speaks the OpenAI API and misbehaves on command."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-1234567890abcdef"


@dataclass
class Answer:
    """What to send back. ``hang``: send nothing until the server is stopped. ``raw``: these bytes, not JSON."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang: bool = False
    drop: bool = False


def reply(content: Any = "hello", *, model: str = "fake-1", **message: Any) -> dict[str, Any]:
    """A chat.completion object."""
    return {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def error(message: str, code: str | None = None) -> dict[str, Any]:
    """An OpenAI error object."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


class FakeOpenAI:
    """Answers in the order of ``answers``; the last one stays. A callable gets the request's body."""

    def __init__(self) -> None:
        self.answers: list[Answer | Callable[[dict[str, Any]], Answer]] = [Answer(body=reply())]
        self.models: Any = {"data": [{"id": "fake-1", "owned_by": "nobody"}]}
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.probes = 0
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.url = ""

    def next(self) -> Answer | Callable[[dict[str, Any]], Answer]:
        with self.lock:
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serve() -> Iterator[FakeOpenAI]:
    """A running fake on a free port of this machine."""
    fake = FakeOpenAI()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Keep the test's output clean."""

        def do_GET(self) -> None:
            fake.probes += 1
            self._send(Answer(200 if fake.models is not None else 404, fake.models))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with fake.lock:
                fake.bodies.append(body)
                fake.keys.append(self.headers.get("authorization", ""))
                fake.in_flight += 1
                fake.most_in_flight = max(fake.most_in_flight, fake.in_flight)
            try:
                answer = fake.next()
                self._send(answer(body) if callable(answer) else answer)
            finally:
                with fake.lock:
                    fake.in_flight -= 1

        def _send(self, answer: Answer) -> None:
            if answer.hang:
                fake.released.wait(30)
            if answer.hang or answer.drop:
                self.close_connection = True
                return
            data = answer.raw if answer.raw is not None else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"content-type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.released.set()
        server.shutdown()
        server.server_close()
