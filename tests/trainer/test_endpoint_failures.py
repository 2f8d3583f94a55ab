"""A real HTTP endpoint that fails for one task or for all, and what training makes of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import harnesslab as hl
from harnesslab.errors import BackboneError
from harnesslab.llm import Connection
from tests.trainer.test_owners import Corner, train
from tests.trainer.test_trainer import RIGHT, WRONG, obedient, trainer

Answer = tuple[int, str]


def good(body: dict[str, Any]) -> Answer:
    message = {"role": "assistant", "content": obedient(body["messages"])}
    return 200, json.dumps({"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})


@contextmanager
def endpoint(answer: Callable[[dict[str, Any], str], Answer]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._send(200, '{"data": []}')

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"])).decode()
            self._send(*answer(json.loads(text), text))

        def _send(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json" if text[:1] in "{[" else "text/html")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def llm(url: str) -> hl.LLM:
    return hl.LLM("m", url, "key", connection=Connection(timeout=5, patience=0, concurrency=2))


def said(message: str, code: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "code": code}})


ONE: dict[str, tuple[Answer, str, str]] = {
    "content filter": ((400, said("content management policy", "content_filter")), "task", "refused"),
    "context": ((400, said("This model's maximum context length is 10 tokens")), "task", "context"),
    "too large": ((413, "<html>too large</html>"), "task", "context"),
    "unprocessable": ((422, said("no")), "task", "refused"),
    "no choices": ((200, '{"choices": []}'), "backbone", "garbled"),
    "html": ((200, "<html>hello</html>"), "backbone", "garbled"),
    "empty": ((200, ""), "backbone", "garbled"),
    "cut off": ((200, '{"choices": [{"mess'), "backbone", "garbled"),
    "not an object": ((200, "[1]"), "backbone", "garbled"),
    "an error with 200": ((200, said("upstream failed")), "backbone", "server"),
    "busy": ((429, said("slow down")), "backbone", "busy"),
    "server": ((503, "down"), "backbone", "server"),
}


@pytest.mark.parametrize("name", ONE)
def test_one_task_that_the_endpoint_fails_costs_that_task(open_lab: Callable[..., Any], name: str) -> None:
    answer, owner, cause = ONE[name]
    lab = open_lab(env=Corner())
    with endpoint(lambda body, text: answer if "Corridor 3." in text else good(body)) as url:
        made = trainer(lab, WRONG, RIGHT, llm=llm(url), search=6, gate=6)
        run = made.measure()
        assert [(e.owner, e.cause) for e in run if e.status != "finished"] == [(owner, cause)]
        assert [loss.verdict.decision for loss in train(made, made.epochs(2))] == ["reject", "promote"]


@pytest.mark.parametrize("name", ONE)
def test_an_endpoint_that_fails_for_all_stops_and_resume_works(open_lab: Callable[..., Any], name: str) -> None:
    answer, _, _ = ONE[name]
    lab, broken = open_lab(), [True]
    with endpoint(lambda body, text: answer if broken else good(body)) as url:
        made = trainer(lab, RIGHT, llm=llm(url), search=6, gate=4)
        with pytest.raises(BackboneError) as stopped:
            train(made, made.epochs(1))
        assert "\n" not in str(stopped.value)
        broken.clear()
        assert [loss.verdict.decision for loss in train(made, made.resume())] == ["promote"]


@pytest.mark.parametrize("status", [401, 403, 402, 404])
def test_what_the_user_must_put_right_stops_at_once(open_lab: Callable[..., Any], status: int) -> None:
    lab, asked = open_lab(), []

    def refuse(body: dict[str, Any], text: str) -> Answer:
        asked.append(1)
        return status, said("no")

    with endpoint(refuse) as url, pytest.raises(BackboneError, match=str(status)):
        trainer(lab, RIGHT, llm=llm(url), workers=1).measure()
    assert len(asked) == 1


def test_an_endpoint_that_is_gone_stops_and_resume_works(open_lab: Callable[..., Any]) -> None:
    lab = open_lab()
    with endpoint(lambda body, text: good(body)) as url:
        pass
    made = trainer(lab, RIGHT, llm=llm(url))
    with pytest.raises(BackboneError, match="cannot be reached"):
        train(made, made.epochs(1))
    with endpoint(lambda body, text: good(body)) as url:
        again = trainer(lab, RIGHT, llm=llm(url))
        assert len(train(again, again.resume())) == 1
