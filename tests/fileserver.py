"""A server of files that misbehaves in every way that was thought of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODIES = {"one.jsonl": b"first\n" * 40_000, "two.jsonl": b"second\n", "deep/er/three.txt": b"third\n"}


class Server(ThreadingHTTPServer):
    """Serves BODIES under /set/; ``faults`` says for a path how to misbehave, one fault a request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: dict[str, list[str]] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.removeprefix("/set/")
        self.server.asked.append(name)
        body = BODIES.get(name)
        faults = self.server.faults.get(name, [])
        fault = faults.pop(0) if faults else ""
        if body is None or fault == "missing":
            self.send_error(404)
            return
        if fault == "busy":
            self.send_error(503)
            return
        length = len(body)
        body = {"wrong": b"x" * length, "longer": body * 2, "short": body[:-5], "cut": body[: length // 2]}.get(
            fault, body
        )
        self.send_response(200)
        # "cut" promises the whole body and hangs up in the middle; "short" is shorter and says so.
        self.send_header("Content-Length", str(length if fault == "cut" else len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    """A running server."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()
