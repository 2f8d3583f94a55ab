"""Three ways to ask a model, each read as chat messages and patched in its own form.

A message that :meth:`Dialect.read` makes keeps the items that it was read from under ``_items``; :meth:`Dialect.patch` writes these again,
with whatever was added to the message, and makes items only for messages that the harness inserted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from harnesslab.bridges.anthropic import Anthropic
from harnesslab.bridges.items import JSON, arguments_text, dicts, dump, flat, join, nested, new_id, parts_as
from harnesslab.llm.replies import to_completion
from harnesslab.llm.types import Completion
from harnesslab.rollout.foreign import Message, Outcome, assistant, text_of


class Dialect(Protocol):
    """One API: how its requests and replies are read and patched. Bodies are never changed in place."""

    path: str

    def read(self, body: Mapping[str, Any]) -> tuple[list[Message], list[JSON]]:
        """The chat messages and the function tools of a request. Raises ValueError where there are none."""

    def patch(self, body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> JSON:
        """The request with these messages, not streamed."""

    def completion(self, raw: Mapping[str, Any]) -> Completion:
        """The reply as text and calls."""

    def blank(self, model: str) -> JSON:
        """An empty reply, to be patched."""

    def reply(self, raw: Mapping[str, Any], outcome: Outcome) -> JSON:
        """The reply as the agent gets it: with the calls of ``outcome``, or its text."""

    def events(self, raw: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[str]:
        """The reply as the events of a stream."""


class Chat:
    """``/chat/completions``."""

    path = "/chat/completions"

    def read(self, body: Mapping[str, Any]) -> tuple[list[Message], list[JSON]]:
        """Its messages are chat messages already."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
            raise ValueError("no messages")
        return messages, [tool for tool in dicts(body.get("tools")) if tool.get("type", "function") == "function"]

    def patch(self, body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> JSON:
        """The messages take the place of those of the request."""
        kept = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        return {**kept, "messages": [dict(message) for message in messages]}

    def blank(self, model: str) -> JSON:
        """One choice without content."""
        choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        return {
            "id": new_id("chatcmpl"),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [choice],
            "usage": usage,
        }

    def completion(self, raw: Mapping[str, Any]) -> Completion:
        """As any endpoint's."""
        return to_completion(raw, {}, seconds=0.0, where="the upstream")

    def reply(self, raw: Mapping[str, Any], outcome: Outcome) -> JSON:
        """The first choice is patched."""
        choice = dict(raw["choices"][0])
        message = {**choice["message"], **outcome.message}
        if not outcome.calls:
            message.pop("tool_calls", None)
        finish = "tool_calls" if outcome.calls else "stop"
        return {**raw, "choices": [{**choice, "message": message, "finish_reason": finish}, *raw["choices"][1:]]}

    def events(self, raw: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[str]:
        """Chunks, then the usage where it was asked for."""
        base = {name: raw.get(name) for name in ("id", "created", "model", "system_fingerprint") if name in raw}
        base["object"] = "chat.completion.chunk"
        for choice in raw["choices"]:
            message, index = choice["message"], choice.get("index", 0)

            def chunk(delta: JSON, finish: Any = None, index: int = index) -> str:
                choices = [{"index": index, "delta": delta, "finish_reason": finish}]
                return f"data: {dump({**base, 'choices': choices})}\n\n"

            calls = dicts(message.get("tool_calls"))
            rest = {key: value for key, value in message.items() if key not in ("content", "tool_calls")}
            yield chunk({**rest, "content": message.get("content") or ("" if not calls else None)})
            for place, call in enumerate(calls):
                yield chunk({"tool_calls": [{"index": place, **call}]})
            yield chunk({}, choice.get("finish_reason") or "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            yield f"data: {dump({**base, 'choices': [], 'usage': raw.get('usage')})}\n\n"
        yield "data: [DONE]\n\n"


class Responses:
    """``/responses``."""

    path = "/responses"

    def read(self, body: Mapping[str, Any]) -> tuple[list[Message], list[JSON]]:
        """Items that belong to one reply of the model (thinking, text, calls) are one message."""
        messages: list[Message] = []
        if isinstance(body.get("instructions"), str):
            messages.append({"role": "system", "content": body["instructions"], "_items": []})
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else dicts(given)
        if not items:
            raise ValueError("no input")
        for item in items:
            kind = item.get("type", "message")
            if kind == "function_call_output":
                result = {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
                messages.append({**result, "_items": [item]})
            elif kind == "message" and item.get("role") != "assistant":
                messages.append({"role": item.get("role"), "content": item.get("content"), "_items": [item]})
            else:
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": None, "_items": []})
                join(messages[-1], item)
        tools = [tool for tool in dicts(body.get("tools")) if tool.get("type") == "function"]
        return messages, [nested(tool) for tool in tools]

    def patch(self, body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> JSON:
        """Items that nothing was added to are those of the request."""
        patched: JSON = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        items: list[JSON] = []
        for message in messages:
            own = message.get("_items")
            if message["role"] == "system" and not own:
                patched["instructions"] = text_of(message)
            elif own is None:
                items += self._items(message)
            elif len(own) == 1 and own[0].get("type") == "function_call_output":
                items.append({**own[0], "output": parts_as(message["content"], "input_text")})
            elif len(own) == 1 and message["role"] != "assistant":
                items.append({**own[0], "content": parts_as(message["content"], "input_text")})
            else:
                items += own
        return {**patched, "input": items}

    def blank(self, model: str) -> JSON:
        """No items."""
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {
            "id": new_id("resp"), "object": "response", "created_at": int(time.time()), "status": "completed", "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "model": model, "output": [],
            "parallel_tool_calls": True, "temperature": None, "tool_choice": "auto", "tools": [], "top_p": None,
            "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, **details},
        }  # fmt: skip

    def completion(self, raw: Mapping[str, Any]) -> Completion:
        """Text and function calls; other items are the agent's matter."""
        message: Message = {"content": None}
        for item in dicts(raw.get("output")):
            join(message, item)
        calls = [flat(call) for call in message.get("tool_calls", ())]
        usage = raw.get("usage") or {}
        return Completion(
            text=text_of(message), tool_calls=tuple(calls),
            finish_reason="length" if raw.get("status") == "incomplete" else "stop",
            prompt_tokens=int(usage.get("input_tokens") or 0), completion_tokens=int(usage.get("output_tokens") or 0),
            model=str(raw.get("model") or ""),
        )  # fmt: skip

    def reply(self, raw: Mapping[str, Any], outcome: Outcome) -> JSON:
        """Calls keep their items; a text that becomes a call, or a call that becomes a text, gets a new one."""
        calls = {call["id"]: call for call in outcome.calls}
        output: list[JSON] = []
        for item in dicts(raw.get("output")):
            if item.get("type") == "function_call":
                if (call := calls.pop(item.get("call_id"), None)) is not None:
                    output.append({**item, "name": call["name"], "arguments": arguments_text(call)})
            elif item.get("type") != "message" or outcome.text == text_of({"content": item.get("content")}):
                output.append(item)
        made = self._items(assistant("" if any(item.get("type") == "message" for item in output) else outcome.text, list(calls.values())))  # fmt: skip
        return {**raw, "status": "completed", "output": [*output, *made]}

    def events(self, raw: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[str]:
        """From ``response.created`` to ``response.completed``."""
        number = itertools.count()

        def event(kind: str, **data: Any) -> str:
            data = {"type": kind, "sequence_number": next(number), **data}
            return f"event: {kind}\ndata: {dump(data)}\n\n"

        begun = {**raw, "status": "in_progress", "output": [], "usage": None}
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        for place, item in enumerate(dicts(raw.get("output"))):
            where = {"output_index": place, "item_id": item.get("id", "")}
            empty = {**item, "status": "in_progress"}
            if item.get("type") == "function_call":
                yield event("response.output_item.added", output_index=place, item={**empty, "arguments": ""})
                yield event("response.function_call_arguments.delta", **where, delta=item.get("arguments", ""))
                yield event("response.function_call_arguments.done", **where, name=item.get("name"), arguments=item.get("arguments", ""))  # fmt: skip
            elif item.get("type") == "message":
                yield event("response.output_item.added", output_index=place, item={**empty, "content": []})
                for index, part in enumerate(dicts(item.get("content"))):
                    at = {**where, "content_index": index}
                    text = str(part.get("text") or "")
                    yield event("response.content_part.added", **at, part={**part, "text": ""})
                    yield event("response.output_text.delta", **at, delta=text, logprobs=[])
                    yield event("response.output_text.done", **at, text=text, logprobs=[])
                    yield event("response.content_part.done", **at, part=part)
            else:
                yield event("response.output_item.added", output_index=place, item=empty)
            yield event("response.output_item.done", output_index=place, item=item)
        yield event("response.incomplete" if raw.get("status") == "incomplete" else "response.completed", response=raw)

    @staticmethod
    def _items(message: Mapping[str, Any]) -> list[JSON]:
        """Items for a message that the harness made."""
        if message["role"] == "tool":
            return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
        text, items = text_of(message), []
        if message["role"] != "assistant":
            return [{"type": "message", "role": message["role"], "content": text}]
        if text:
            part = {"type": "output_text", "text": text, "annotations": []}
            items = [{"type": "message", "id": new_id("msg"), "role": "assistant", "status": "completed", "content": [part]}]  # fmt: skip
        for call in map(flat, message.get("tool_calls") or ()):
            items.append({"type": "function_call", "id": new_id("fc"), "call_id": call["id"], "name": call["name"],
                          "arguments": arguments_text(call), "status": "completed"})  # fmt: skip
        return items


DIALECTS: tuple[Dialect, ...] = (Chat(), Responses(), Anthropic())
