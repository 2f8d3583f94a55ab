"""The support desk behind other agents' loops, and a model for it that speaks every API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx

from harnesslab.bridges.dialects import Chat, Dialect
from harnesslab.bridges.redirect import dialect_of
from harnesslab.llm.types import Completion
from harnesslab.rollout.foreign import Outcome
from tests.desk import TOOLS, Desk, clumsy

Model = Callable[..., dict[str, Any]]


def reply(dialect: Dialect, message: dict[str, Any]) -> dict[str, Any]:
    """A chat message as a reply in any API."""
    calls = tuple(
        {"id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        for call in message.get("tool_calls", ())
    )
    text = message.get("content") or ""
    return dialect.reply(dialect.blank("mock"), Outcome(Completion(text, calls), text, calls))


class Upstream(httpx.AsyncBaseTransport):
    """A model's API; what it was asked is in ``seen``."""

    def __init__(self, model: Model = clumsy, *, seconds: float = 0.0, headers: dict[str, str] | None = None):
        self.model, self.seconds, self.headers = model, seconds, headers or {}
        self.seen: list[tuple[httpx.Request, Any]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        content = await request.aread()
        dialect = dialect_of(request.method, request.url.path)
        if dialect is None:
            self.seen.append((request, content))
            return httpx.Response(200, json={"object": "list", "data": [{"id": "mock"}]}, headers={"x-other": "kept"})
        try:
            body = json.loads(content)
            messages, tools = dialect.read(body)
        except (ValueError, AttributeError):
            return httpx.Response(400, json={"error": {"message": "bad request, says the upstream"}})
        self.seen.append((request, body))
        if self.seconds:
            await asyncio.sleep(self.seconds)
        found = self.model(messages, tools)
        if isinstance(found, httpx.Response):
            return found
        raw = reply(dialect, found)
        if body.get("stream"):
            text = "".join(dialect.events(raw, body))
            return httpx.Response(200, content=text.encode(), headers={"content-type": "text/event-stream"})
        return httpx.Response(200, json=raw, headers=self.headers)


def plain_loop(client: Any, desk: Desk, *, stream: bool = False, rounds: int = 6) -> None:
    """An agent that exists: its own prompt, its own loop, the openai package."""
    messages: list[Any] = [
        {"role": "system", "content": "You are the desk of a shop."},
        {"role": "user", "content": desk.instruction},
    ]
    for _ in range(rounds):
        calls, content = ask(client, messages, stream)
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if calls:
            message["tool_calls"] = calls
        messages.append(message)
        if not calls:
            return
        for call in calls:
            told = desk.handle(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})


def ask(client: Any, messages: list[Any], stream: bool) -> tuple[list[dict[str, Any]], str | None]:
    if not stream:
        found = client.chat.completions.create(model="mock", messages=messages, tools=TOOLS).choices[0].message
        return [call.model_dump() for call in found.tool_calls or ()], found.content
    calls: dict[int, dict[str, Any]] = {}
    text = ""
    for chunk in client.chat.completions.create(model="mock", messages=messages, tools=TOOLS, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                empty = {"id": piece.id, "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece.index, empty)
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""
    return list(calls.values()), text or None


CHAT = Chat()
