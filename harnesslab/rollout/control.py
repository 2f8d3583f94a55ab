"""What a control backbone may pick from where neither the harness nor the environment lists actions.

A random control must have a fair chance: where only tools are known, it gets complete, well-formed calls in
the harness's own action protocol, whose arguments are words that the agent has just seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from harnesslab.harness.context import Action, Context
from harnesslab.harness.protocol import render

WORDS = 24
"""How many words of the last observation serve as arguments."""


def tool_calls(context: Context) -> tuple[str, ...]:
    """Complete replies, each a call of one tool with one seen word; empty when no tools are known.

    For native tool calls they are JSON objects of a name and arguments, of which the control makes calls.
    """
    protocol = "json" if context.protocol == "tools" else context.protocol
    calls = seen_calls(context.tools or (), context.observation)
    return tuple(render(call, protocol, context.tools) for call in calls)


def seen_calls(tools: Sequence[dict[str, Any]], text: str) -> list[Action]:
    """A call of each tool with each of the last words of the text."""
    words = list(dict.fromkeys(re.findall(r"\w+", text)))[-WORDS:] or ["none"]
    return [_call(tool.get("function", tool), word) for tool in tools for word in words]


def _call(function: dict[str, Any], word: str) -> Action:
    schema = function.get("parameters") or {}
    properties: dict[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or list(properties)
    return {
        "name": str(function.get("name", "")),
        "arguments": {name: _value(properties.get(name, {}), word) for name in required},
    }


def _value(schema: dict[str, Any], word: str) -> Any:
    if schema.get("enum"):
        return schema["enum"][sum(map(ord, word)) % len(schema["enum"])]
    kind = schema.get("type")
    if kind == "array":
        return [_value(schema.get("items") or {}, word)]
    if kind in ("integer", "number"):
        return int(word) if word.isdigit() and len(word) < 10 else len(word)
    if kind == "boolean":
        return len(word) % 2 == 0
    if kind == "object":
        return {}
    return word
