"""The parts of requests and replies, in the forms of the three APIs, and the way from one form to another."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.harness.toolschema import checked, function, name_of
from harnesslab.rollout.foreign import Message, text_of

JSON = dict[str, Any]


def dicts(value: Any) -> list[JSON]:
    """The objects in a list; none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def dump(value: Any) -> str:
    """Compact JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_count = itertools.count()


def new_id(kind: str) -> str:
    """An id that no other item has."""
    return f"{kind}_hl{time.time_ns():x}{next(_count):x}"


def nested(tool: Mapping[str, Any]) -> JSON:
    """A tool as chat completions name it."""
    function = {name: tool[name] for name in ("name", "description", "parameters") if tool.get(name) is not None}
    return {"type": "function", "function": function}


def join(message: Message, item: Mapping[str, Any]) -> None:
    """Take an item of a reply into a chat message."""
    message.setdefault("_items", []).append(item)
    if item.get("type") == "function_call":
        call = {"name": item.get("name"), "arguments": item.get("arguments") or "{}"}
        entry = {"id": item.get("call_id"), "type": "function", "function": call}
        message.setdefault("tool_calls", []).append(entry)
    elif item.get("type", "message") == "message":
        content = item.get("content")
        text = content if isinstance(content, str) else text_of({"content": content})
        message["content"] = "\n".join(filter(None, (message.get("content"), text)))


def parts_as(content: Any, kind: str) -> Any:
    """Content whose added parts have the type that the API wants."""
    if not isinstance(content, list):
        return content
    return [
        {**part, "type": kind} if isinstance(part, dict) and part.get("type") == "text" else part for part in content
    ]


def with_tools(body: JSON, tools: Sequence[Mapping[str, Any]] | None) -> JSON:
    """The request with descriptions and parameters of its tools as the harness has them; tools that it left alone are as they were."""
    wanted = {name_of(tool): function(tool) for tool in tools or ()}
    found = []
    for tool in dicts(body.get("tools")):
        own = tool.get("function")
        inner: JSON = own if isinstance(own, dict) else tool
        schema = "input_schema" if "input_schema" in inner else "parameters"
        new = wanted.get(str(inner.get("name")))
        if new is not None and new != function(checked([nested({**inner, "parameters": inner.get(schema)})])[0]):
            inner = {**inner, **{key: new[key] for key in ("description",) if key in new}}
            inner = {**inner, schema: new["parameters"]} if "parameters" in new else inner
            tool = {**tool, "function": inner} if "function" in tool else inner
        found.append(tool)
    return {**body, "tools": found} if found else body


def flat(call: Mapping[str, Any]) -> JSON:
    """A call of a chat message as ``{"id", "name", "arguments"}``."""
    return {
        "id": call.get("id") or "",
        "name": call["function"]["name"],
        "arguments": loaded(call["function"]["arguments"]),
    }


def loaded(arguments: Any) -> Any:
    """Arguments as an object; the text that they are where it is not the JSON of one."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def use_of(block: Mapping[str, Any]) -> JSON:
    """Anthropic's use of a tool as ``{"id", "name", "arguments"}``."""
    return {"id": block.get("id") or "", "name": block.get("name") or "", "arguments": block.get("input") or {}}


def block_text(block: Mapping[str, Any]) -> str:
    """The text of one of Anthropic's blocks, results of tools included."""
    content = block.get("content") if block.get("type") == "tool_result" else block.get("text")
    return content if isinstance(content, str) else text_of({"content": content})


def arguments_text(call: Mapping[str, Any]) -> str:
    """The arguments of a call as JSON."""
    return call["arguments"] if isinstance(call["arguments"], str) else dump(call["arguments"])


def arguments_object(call: Mapping[str, Any]) -> JSON:
    """The arguments of a call as an object; empty where they are not one."""
    arguments = loaded(call["arguments"])
    return arguments if isinstance(arguments, dict) else {}
