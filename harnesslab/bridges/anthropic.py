"""Anthropic's messages, read as chat messages and patched in their own form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.bridges.items import JSON, arguments_object, block_text, dicts, dump, flat, nested, new_id, use_of
from harnesslab.llm.types import Completion
from harnesslab.rollout.foreign import Message, Outcome, assistant, text_of


class Anthropic:
    """``/messages``."""

    path = "/messages"

    def read(self, body: Mapping[str, Any]) -> tuple[list[Message], list[JSON]]:
        """A message with results of tools is one ``tool`` message."""
        messages: list[Message] = []
        if body.get("system"):
            messages.append({"role": "system", "content": body["system"], "_items": []})
        for item in dicts(body.get("messages")):
            content = item.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else dicts(content)
            uses = [block for block in blocks if block.get("type") == "tool_use"]
            results = [block for block in blocks if block.get("type") == "tool_result"]
            parts = [{"type": "text", "text": block_text(block)} for block in blocks if block_text(block)]
            role = "tool" if results else item.get("role")
            message: Message = {"role": role, "content": parts, "_items": [item], "_parts": parts}
            if uses:
                message["tool_calls"] = assistant("", [use_of(block) for block in uses])["tool_calls"]
            messages.append(message)
        if not any(message["role"] != "system" for message in messages):
            raise ValueError("no messages")
        tools = [tool for tool in dicts(body.get("tools")) if isinstance(tool.get("input_schema"), dict)]
        return messages, [nested({**tool, "parameters": tool["input_schema"]}) for tool in tools]

    def patch(self, body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> JSON:
        """What was added to a message is a block at its end, because results of tools come first."""
        patched: JSON = {name: value for name, value in body.items() if name != "stream"}
        items: list[JSON] = []
        for message in messages:
            own = message.get("_items")
            if message["role"] == "system" and not own:
                patched["system"] = message["content"]
            elif own is None:
                items.append(self._item(message))
            else:
                parts = message["_parts"]
                added = [part for part in message["content"] if not any(part is one for one in parts)]
                content = own[0].get("content")
                blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
                items.append({**own[0], "content": [*blocks, *added]} if added else own[0])
        return {**patched, "messages": items}

    def blank(self, model: str) -> JSON:
        """No blocks."""
        usage = {"input_tokens": 0, "output_tokens": 0}
        return {
            "id": new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }

    def completion(self, raw: Mapping[str, Any]) -> Completion:
        """Text and uses of tools; thinking is the agent's matter."""
        blocks, usage = dicts(raw.get("content")), raw.get("usage") or {}
        calls = [use_of(block) for block in blocks if block.get("type") == "tool_use"]
        return Completion(
            text="\n".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text"),
            tool_calls=tuple(calls), finish_reason="length" if raw.get("stop_reason") == "max_tokens" else "stop",
            prompt_tokens=int(usage.get("input_tokens") or 0), completion_tokens=int(usage.get("output_tokens") or 0),
            model=str(raw.get("model") or ""),
        )  # fmt: skip

    def reply(self, raw: Mapping[str, Any], outcome: Outcome) -> JSON:
        """Uses of tools keep their blocks."""
        calls = {call["id"]: call for call in outcome.calls}
        kept: list[JSON] = []
        for block in dicts(raw.get("content")):
            if block.get("type") == "tool_use":
                if (call := calls.pop(block.get("id"), None)) is not None:
                    kept.append({**block, "name": call["name"], "input": arguments_object(call)})
            elif block.get("type") != "text":
                kept.append(block)
        text = [{"type": "text", "text": outcome.text}] if outcome.text or not outcome.calls else []
        thinking = [block for block in kept if block["type"] != "tool_use"]
        uses = [block for block in kept if block["type"] == "tool_use"]
        made = [{"type": "tool_use", "id": call["id"], "name": call["name"], "input": arguments_object(call)} for call in calls.values()]  # fmt: skip
        reason = "tool_use" if outcome.calls else "end_turn"
        return {**raw, "content": [*thinking, *text, *uses, *made], "stop_reason": reason}

    def events(self, raw: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[str]:
        """From ``message_start`` to ``message_stop``."""

        def event(kind: str, **data: Any) -> str:
            return f"event: {kind}\ndata: {dump({'type': kind, **data})}\n\n"

        yield event("message_start", message={**raw, "content": [], "stop_reason": None})
        for index, block in enumerate(dicts(raw.get("content"))):
            kind = block.get("type")
            nothing: JSON = {"text": ""} if kind == "text" else {"input": {}} if kind == "tool_use" else {}
            empty = {**block, **nothing}
            yield event("content_block_start", index=index, content_block=empty)
            if kind == "text":
                yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": block["text"]})
            elif kind == "tool_use":
                delta: JSON = {"type": "input_json_delta", "partial_json": dump(block.get("input") or {})}
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        delta = {"stop_reason": raw.get("stop_reason"), "stop_sequence": raw.get("stop_sequence")}
        yield event("message_delta", delta=delta, usage=raw.get("usage") or {})
        yield event("message_stop")

    @staticmethod
    def _item(message: Mapping[str, Any]) -> JSON:
        """A message that the harness made."""
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            return {"role": "user", "content": [result]}
        text = text_of(message)
        blocks: list[JSON] = [{"type": "text", "text": text}] if text else []
        for call in map(flat, message.get("tool_calls") or ()):
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": arguments_object(call)})
        return {"role": message["role"], "content": blocks}
