"""Where an agent's requests to a model go while one of its episodes is played: to the episode, and not to the network.

An agent in this process keeps its own client. Whatever that client sends through httpx to one of the known paths is answered here. A
program gets an address of its own instead, whose path names the episode.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import importlib.util
import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from harnesslab.bridges.dialects import DIALECTS, Dialect

MAX_BODY = 50_000_000


class Line(Protocol):
    """One episode, as an agent's client sees it."""

    def ask(self, dialect: Dialect, body: Mapping[str, Any]) -> dict[str, Any]:
        """The model's reply to a request. Blocks until it is there. Raises Hung where the episode is over."""


class Hung(Exception):
    """The episode is over: no further request is answered."""


_line: contextvars.ContextVar[Line | None] = contextvars.ContextVar("harnesslab_line", default=None)
_lock = threading.Lock()
_lines: list[Line] = []
_real: list[tuple[Any, Callable[..., Any], Callable[..., Any]]] = []
CLIENTS = ("httpx", "httpx2")
"""The libraries through which clients of models send; openai has used both."""


def answer(line: Line, dialect: Dialect, content: bytes) -> tuple[int, str, bytes]:
    """Status, content type and content of the answer to one request."""
    try:
        body = json.loads(content)
        dialect.read(body)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        return _refused(400, f"not a request for {dialect.path}: {error}")
    try:
        raw = line.ask(dialect, body)
    except Hung as error:
        return _refused(410, str(error))
    if body.get("stream"):
        return 200, "text/event-stream", "".join(dialect.events(raw, body)).encode("utf-8", "replace")
    return 200, "application/json", json.dumps(raw).encode()


def _refused(status: int, message: str) -> tuple[int, str, bytes]:
    error = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
    return status, "application/json", json.dumps(error).encode()


def dialect_of(method: str, path: str) -> Dialect | None:
    """The API that a path belongs to; None for any other request."""
    if method != "POST":
        return None
    return next((dialect for dialect in DIALECTS if path.rstrip("/").endswith(dialect.path)), None)


# -- in this process ------------------------------------------------------------------------------


@contextlib.contextmanager
def open_line(line: Line) -> Iterator[None]:
    """While it is open, requests of this context go to ``line``; those of threads that it started do where no other line is open."""
    with _lock:
        if not _lines:
            _patch()
        _lines.append(line)
    token = _line.set(line)
    try:
        yield
    finally:
        _line.reset(token)
        with _lock:
            _lines.remove(line)
            if not _lines:
                _unpatch()


def _current() -> Line:
    line = _line.get()
    if line is not None:
        return line
    with _lock:
        if len(_lines) == 1:
            return _lines[0]
    raise RuntimeError(
        "this request to a model comes from a thread that does not say which episode it belongs to, and several are being played: start the "
        "thread with contextvars.copy_context().run, or play one episode at a time (settings={'workers': 1})"
    )


def _patch() -> None:
    for name in CLIENTS:
        if importlib.util.find_spec(name) is not None:
            library = importlib.import_module(name)
            _real.append((library, library.Client.send, library.AsyncClient.send))
            _redirect(library)


def _unpatch() -> None:
    while _real:
        library, send, asend = _real.pop()
        library.Client.send, library.AsyncClient.send = send, asend


def _redirect(library: Any) -> None:
    """Have the clients of one library ask the line that is open."""
    send, asend = library.Client.send, library.AsyncClient.send

    def sync(client: Any, request: Any, **options: Any) -> Any:
        if (dialect := dialect_of(request.method, request.url.path)) is None:
            return send(client, request, **options)
        return response(request, *answer(_current(), dialect, request.read()))

    async def asynchronous(client: Any, request: Any, **options: Any) -> Any:
        if (dialect := dialect_of(request.method, request.url.path)) is None:
            return await asend(client, request, **options)
        content, line = await request.aread(), _current()
        return response(request, *await asyncio.to_thread(answer, line, dialect, content))

    def response(request: Any, status: int, kind: str, content: bytes) -> Any:
        return library.Response(status, headers={"content-type": kind}, content=content, request=request)

    library.Client.send, library.AsyncClient.send = sync, asynchronous


# -- for programs ---------------------------------------------------------------------------------


class Switchboard:
    """A server on this machine that gives each episode an address of its own, which nobody can guess."""

    def __init__(self) -> None:
        lines: dict[str, Line] = {}
        self._lines = lines

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Nothing is logged."""

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                token, _, path = self.path.partition("?")[0].lstrip("/").partition("/")
                line, dialect = lines.get(token), dialect_of("POST", f"/{path}")
                if length > MAX_BODY:
                    self._send(*_refused(413, f"at most {MAX_BODY} bytes"))
                    return
                content = self.rfile.read(length)
                found = line is not None and dialect is not None
                self._send(*(answer(line, dialect, content) if found else _refused(404, "there is nothing here")))  # type: ignore[arg-type]

            def do_GET(self) -> None:
                known = self.path.lstrip("/").partition("/")[0] in lines and self.path.rstrip("/").endswith("/models")
                models = {
                    "object": "list",
                    "data": [{"id": "harnesslab", "object": "model", "created": 0, "owned_by": "harnesslab"}],
                }
                self._send(
                    *(
                        (200, "application/json", json.dumps(models).encode())
                        if known
                        else _refused(404, "there is nothing here")
                    )
                )

            def _send(self, status: int, kind: str, content: bytes) -> None:
                with contextlib.suppress(ConnectionError):
                    self.send_response(status)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="harnesslab-bridge", daemon=True).start()

    @contextlib.contextmanager
    def connect(self, line: Line) -> Iterator[str]:
        """The base URL of ``line`` while it is open; ends in ``/v1``."""
        token = secrets.token_urlsafe(24)
        self._lines[token] = line
        try:
            yield f"http://127.0.0.1:{self._server.server_address[1]}/{token}/v1"
        finally:
            del self._lines[token]
