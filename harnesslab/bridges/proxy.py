"""``harnesslab serve``: a harness between any agent and its model, as an endpoint that speaks the usual APIs.

A request is read, patched and sent on with the caller's own headers; the reply is repaired before the caller sees it. A request that
the harness has nothing to do with, and every other path, is passed through byte for byte.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from harnesslab.bridges.dialects import DIALECTS, Dialect
from harnesslab.bridges.items import with_tools
from harnesslab.bridges.metrics import Metrics
from harnesslab.bridges.sessions import Sessions
from harnesslab.bridges.upstream import OWN, Upstream, UpstreamFault, sent_back, sent_on
from harnesslab.errors import BackboneError, ConfigError, HarnesslabError
from harnesslab.harness.load import Harness
from harnesslab.harness.pipeline import Pipeline
from harnesslab.harness.regexes import Regex
from harnesslab.rollout.agent import Agent, AgentRun
from harnesslab.rollout.foreign import Conversation
from harnesslab.rollout.move import Move

Mode = Literal["on", "shadow", "off"]
MODES: tuple[Mode, ...] = ("on", "shadow", "off")
log = logging.getLogger("harnesslab.serve")
CLIENTS = 16
"""Pools of connections: what a pool does for one request grows with the connections that it holds."""
STOPPED = "The harness stopped this run."
REFUSED = "The harness withheld every reply of the model."


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How the proxy behaves.

    ``budget``: steps of a run, for interventions that look at it. ``asks``: how often the model is asked again for one request after
    a reply was withheld. ``max_body``: bytes. ``timeout``: seconds that the upstream may be silent. ``only``: a pattern that the system
    message must contain for the harness to apply.
    """

    mode: str = "on"
    budget: int = 50
    asks: int = 3
    max_body: int = 20_000_000
    max_sessions: int = 10_000
    timeout: float = 600.0
    only: str | None = None


class Proxy:
    """The endpoint. :attr:`app` is an ASGI application."""

    def __init__(self, harness: Harness, upstream: str, settings: ServeSettings | None = None, *, transport: httpx.AsyncBaseTransport | None = None):  # fmt: skip
        self.settings = settings or ServeSettings()
        if self.settings.mode not in MODES:
            raise ConfigError(f"mode is {self.settings.mode!r}; the modes are {', '.join(MODES)}")
        url = httpx.URL(upstream)
        if url.scheme not in ("http", "https") or not url.host:
            raise ConfigError(
                f"upstream {upstream!r} is not an HTTP URL; expected something like https://api.openai.com/v1"
            )
        self.harness, self.metrics = harness, Metrics()
        self._pipeline = Pipeline(harness)
        self.sessions = Sessions(self.settings.max_sessions)
        try:
            self._only = Regex(self.settings.only) if self.settings.only else None
        except ValueError as error:
            raise ConfigError(f"only: {error}") from error
        self._reads_replies = any({"realize", "rank", "regulate"} & set(one.hooks) for one in harness.interventions)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        timeout = httpx.Timeout(self.settings.timeout, connect=10.0)
        self._clients = tuple(
            httpx.AsyncClient(base_url=f"{upstream.rstrip('/')}/", timeout=timeout, limits=limits, transport=transport)
            for _ in range(CLIENTS if transport is None else 1)
        )
        self._turn = itertools.cycle(self._clients)
        routes = [Route("/healthz", self._health), Route("/metrics", self._metrics)]
        every = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
        for prefix in ("/v1", ""):
            routes += [
                Route(f"{prefix}{dialect.path}", self._handler(dialect), methods=["POST"]) for dialect in DIALECTS
            ]
            routes.append(Route(f"{prefix}/{{path:path}}", self._other, methods=every))
        self.app = Starlette(routes=routes, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        self.sessions.close()
        for client in self._clients:
            await client.aclose()

    async def _health(self, request: Request) -> Response:
        about = {
            "status": "ok",
            "harness": self.harness.name,
            "digest": self.harness.digest,
            "mode": self.settings.mode,
        }
        return JSONResponse(about)

    async def _metrics(self, request: Request) -> Response:
        self.metrics.sessions.set(len(self.sessions))
        text, kind = self.metrics.render()
        return Response(text, media_type=kind)

    async def _other(self, request: Request) -> Response:
        try:
            content = await self._content(request)
        except _TooLarge as error:
            return error.response
        return await self._through(request, request.path_params["path"], content)

    def _handler(self, dialect: Dialect) -> Any:
        async def handle(request: Request) -> Response:
            began = time.perf_counter()
            seen = _Seen(dialect.path, self._mode(request))
            try:
                response = await self._answer(request, dialect, seen)
            except ClientDisconnect:
                response = Response(status_code=499)
            seen.finish(self.metrics, response.status_code, time.perf_counter() - began)
            return response

        return handle

    async def _answer(self, request: Request, dialect: Dialect, seen: _Seen) -> Response:
        try:
            content = await self._content(request)
        except _TooLarge as error:
            return error.response
        path = dialect.path.lstrip("/")
        try:
            body = json.loads(content)
            messages, tools = dialect.read(body)
            session = self.sessions.find(request.headers.get(f"{OWN}-session", ""), _who(request), messages)
            talk = Conversation(session.marks, self._only, session.id)
            talk.receive(messages, tools)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return await self._through(request, path, content, seen)  # for the upstream to refuse
        seen.session = session.id
        if seen.mode == "off" or not talk.concerned or body.get("n", 1) != 1 or not self.harness.interventions:
            return await self._through(request, path, content, seen)
        with self.sessions.working(session, self._pipeline) as pipeline:
            run = self._run(pipeline, Upstream(next(self._turn), dialect, body, sent_on(request.headers)), talk)
            if seen.mode == "shadow":
                return await self._shadowed(request, dialect, body, content, run, seen)
            if body.get("stream") and not (self._reads_replies and tools):
                return await self._shaped(request, dialect, body, run, seen)
            return await self._stepped(request, dialect, body, run, seen)

    async def _stepped(self, request: Request, dialect: Dialect, body: Any, run: AgentRun, seen: _Seen) -> Response:
        """The whole step: shape, ask, repair, regulate; a withheld reply is asked for again."""
        upstream = run.agent.backbone
        assert isinstance(upstream, Upstream)
        try:
            move = await run.decide("")
            seen.saw(move)
            for _ in range(self.settings.asks):
                if move.executes or move.stops:
                    break
                move = await run.decide("")
                seen.saw(move)
        except UpstreamFault as fault:
            return Response(fault.response.content, fault.response.status_code, sent_back(fault.response.headers))
        except BackboneError as error:
            return _gateway(error.__cause__ or error)
        except HarnesslabError as error:  # an intervention that fails must not take the agent down with it
            seen.fault = str(error)
            return await self._through(request, dialect.path.lstrip("/"), json.dumps(body).encode(), seen)
        finally:
            seen.upstream, seen.calls = seen.upstream + upstream.seconds, seen.calls + upstream.calls
        return self._reply(dialect, body, move, seen)

    def _reply(self, dialect: Dialect, body: Any, move: Move, seen: _Seen) -> Response:
        outcome = move.outcome
        assert outcome is not None
        raw: Any = outcome.reply.body
        if not move.executes:
            outcome.text, outcome.calls = move.result or (STOPPED if move.stops else REFUSED), ()
        if not move.executes or outcome.changed:
            raw = dialect.reply(raw, outcome)
        headers = {f"{OWN}-fired": ",".join(seen.fired).encode("ascii", "replace").decode()} if seen.fired else {}
        if body.get("stream"):
            events = (event.encode() for event in dialect.events(raw, body))
            return StreamingResponse(_each(events), media_type="text/event-stream", headers=headers)
        return JSONResponse(raw, headers=headers)

    async def _shaped(self, request: Request, dialect: Dialect, body: Any, run: AgentRun, seen: _Seen) -> Response:
        """A stream of which only the request is changed: the upstream's own bytes go to the caller as they come."""
        talk = _talk(run)
        try:
            perceived = talk.see(run.pipeline, self.settings.budget)
            ready = talk.begin(run.pipeline, perceived.context)
            seen.fired = list(dict.fromkeys((*perceived.fired, *ready.fired)))
            kept = {name: body[name] for name in ("stream", "stream_options") if name in body}
            patched = {**with_tools(dialect.patch(body, ready.messages), ready.tools), **kept}
        except HarnesslabError as error:
            seen.fault, patched = str(error), body
        return await self._through(
            request, dialect.path.lstrip("/"), json.dumps(patched).encode("utf-8", "replace"), seen
        )

    async def _shadowed(self, request: Request, dialect: Dialect, body: Any, content: bytes, run: AgentRun, seen: _Seen) -> Response:  # fmt: skip
        """Pass everything through, and note what the harness would have done."""
        talk = _talk(run)
        try:
            perceived = talk.see(run.pipeline, self.settings.budget)
            context = perceived.context
            ready = talk.begin(run.pipeline, context)
            seen.fired = list(dict.fromkeys((*perceived.fired, *ready.fired)))
            seen.changed = list(ready.messages) != list(talk.messages) or ready.tools != talk.tools
            response = await self._through(
                request, dialect.path.lstrip("/"), content, seen, whole=not body.get("stream")
            )
            if not body.get("stream") and response.status_code == 200:
                reply = dialect.completion(json.loads(bytes(response.body)))
                chosen = talk.choose(run.pipeline, context, [reply])
                outcome = talk.outcome
                assert outcome is not None
                seen.fired = list(dict.fromkeys((*seen.fired, *chosen.fired)))
                seen.changed = seen.changed or outcome.changed or outcome.withheld is not None or outcome.stopped
                seen.blocked += outcome.withheld is not None
            return response
        except (HarnesslabError, ValueError, KeyError, TypeError) as error:
            seen.fault = f"{type(error).__name__}: {error}"
            return await self._through(request, dialect.path.lstrip("/"), content, seen)

    def _run(self, pipeline: Pipeline, upstream: Upstream, talk: Conversation) -> AgentRun:
        run = Agent(pipeline, upstream, budget=self.settings.budget).start("")
        run.conversation = talk
        return run

    async def _through(self, request: Request, path: str, content: bytes, seen: _Seen | None = None, *, whole: bool = False) -> Response:  # fmt: skip
        """Pass a request on and its answer back, streamed."""
        began = time.perf_counter()
        client = next(self._turn)
        asked = client.build_request(
            request.method,
            path,
            content=content,
            headers=sent_on(request.headers),
            params=request.url.query.encode() or None,
        )
        try:
            answer = await client.send(asked, stream=True)
            if whole:
                await answer.aread()
        except httpx.HTTPError as error:
            return _gateway(error)
        finally:
            if seen is not None:
                seen.upstream, seen.calls = seen.upstream + time.perf_counter() - began, seen.calls + 1
        headers = sent_back(answer.headers)
        if whole or answer.is_stream_consumed:
            return Response(answer.content, answer.status_code, headers)
        return StreamingResponse(_body(answer), answer.status_code, headers)

    async def _content(self, request: Request) -> bytes:
        """The body. Raises _TooLarge as soon as it is longer than allowed."""
        limit = self.settings.max_body
        if int(request.headers.get("content-length") or 0) > limit:
            raise _TooLarge(limit)
        found = bytearray()
        async for chunk in request.stream():
            found += chunk
            if len(found) > limit:
                raise _TooLarge(limit)
        return bytes(found)

    def _mode(self, request: Request) -> Mode:
        """The mode of the settings, or a weaker one that the caller asks for: a header never switches a harness on."""
        wanted = request.headers.get(OWN, "").lower()
        asked = [place for place, mode in enumerate(MODES) if mode in (wanted, self.settings.mode)]
        return MODES[max(asked)]


class _Seen:
    """What is logged and counted of one request: nothing of its content, and no key."""

    def __init__(self, path: str, mode: Mode):
        self.path, self.mode = path, mode
        self.session = self.fault = ""
        self.fired: list[str] = []
        self.changed = False
        self.blocked = self.calls = 0
        self.upstream = 0.0
        self.repaired: tuple[str, ...] = ()
        self.withheld_by: list[str] = []

    def saw(self, move: Move) -> None:
        """Take in one step."""
        self.fired += [name for name in move.fired if name not in self.fired]
        outcome = move.outcome
        if outcome is not None and outcome.changed:
            self.changed, self.repaired = True, move.fired
        if not move.executes:
            self.blocked += 1
            self.withheld_by += move.fired[-1:]

    def finish(self, metrics: Metrics, status: int, seconds: float) -> None:
        """Count it, and write its line."""
        own = max(0.0, seconds - self.upstream)
        metrics.request(self.path, status, self.mode, seconds=seconds, overhead=own)
        metrics.steps(self.fired, self.repaired, self.withheld_by, self.fault)
        log.info("request", extra={"fields": {
            "path": self.path, "status": status, "mode": self.mode, "session": self.session, "ms": round(1000 * seconds, 2),
            "upstream_ms": round(1000 * self.upstream, 2), "calls": self.calls, "fired": self.fired, "changed": self.changed,
            "withheld": self.blocked, "fault": self.fault,
        }})  # fmt: skip


class _TooLarge(Exception):
    def __init__(self, limit: int):
        message = f"the request is larger than {limit} bytes, which is what this proxy accepts"
        self.response = JSONResponse({"error": {"message": message, "type": "invalid_request_error"}}, 413)


def _gateway(error: BaseException) -> Response:
    late = isinstance(error, httpx.TimeoutException | TimeoutError)
    message = f"the upstream {'did not answer in time' if late else 'cannot be reached'}: {type(error).__name__}"
    return JSONResponse({"error": {"message": message, "type": "upstream_error"}}, 504 if late else 502)


def _talk(run: AgentRun) -> Conversation:
    assert run.conversation is not None
    return run.conversation


def _who(request: Request) -> str:
    return request.headers.get("authorization") or request.headers.get("x-api-key") or ""


async def _each(events: Any) -> AsyncIterator[bytes]:
    for event in events:
        yield event


async def _body(answer: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_raw():
            yield chunk
    except httpx.HTTPError:
        return  # the upstream broke off; so does the answer
    finally:
        await answer.aclose()


def serve(proxy: Proxy, host: str, port: int, *, limit: int | None = None) -> None:
    """Run until SIGTERM or Ctrl-C; requests in flight are finished first."""
    import uvicorn

    handler = logging.StreamHandler()
    handler.setFormatter(JSONLines())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    uvicorn.run(proxy.app, host=host, port=port, log_level="warning", access_log=False, limit_concurrency=limit, timeout_graceful_shutdown=60, server_header=False)  # fmt: skip


class JSONLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message, and the fields of the event."""
        line: dict[str, Any] = {"time": round(record.created, 3), "level": record.levelname.lower(), "event": record.getMessage()}  # fmt: skip
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        return json.dumps({**line, **fields}, default=str)
