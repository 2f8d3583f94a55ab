"""Find the tool call that a reply means, and mend its arguments by the tool's schema. Used by the ``rescue`` kind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.harness.context import Proposal
from harnesslab.harness.protocol import Tools, blocks, function, loads, sole_parameter
from harnesslab.harness.repair import MAX_CHARS, fences, json_objects, mended

Call = dict[str, Any]

_NAME_KEYS = ("name", "tool", "tool_name", "function", "action")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input", "action_input", "params")


def find_call(proposal: Proposal, tools: Tools) -> Call | None:
    """The tool call that a reply means: from broken native calls, JSON, Python-like calls, or a lone code block."""
    for name, arguments in _candidates(proposal, tools):
        tool = find_tool(name, tools)
        if tool is not None:
            fitted = fit(arguments, tool)
            if fitted is not None:
                return {"name": function(tool)["name"], "arguments": fitted}
    return _lone_value(proposal.raw[:MAX_CHARS], tools)


def find_tool(name: Any, tools: Tools) -> Mapping[str, Any] | None:
    """The tool of this name; case and punctuation do not count."""
    plain = _plain(name) if isinstance(name, str) else ""
    return next((tool for tool in tools if plain and _plain(str(function(tool).get("name"))) == plain), None)


def fit(arguments: Any, tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """``arguments`` in the shape of the tool's schema: types mended, the only argument renamed; None if hopeless."""
    sole = sole_parameter(tool)
    properties = function(tool).get("parameters", {}).get("properties", {})
    if isinstance(arguments, str) and arguments.strip().startswith(("{", "[")):
        value = mended(arguments)
        arguments = value if isinstance(value, (dict, list)) else arguments
    if not isinstance(arguments, dict):
        if sole is None or arguments in (None, ""):
            required = function(tool).get("parameters", {}).get("required")
            return {} if arguments in (None, "") and not required else None
        arguments = {sole: arguments}
    elif sole is not None and len(arguments) == 1 and not set(arguments) & set(properties):
        arguments = {sole: next(iter(arguments.values()))}
    if sole is not None and sole not in arguments:
        return None
    return {name: _typed(value, properties.get(name, {})) for name, value in arguments.items()}


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """``value`` in the type that the schema asks for, where the way there is plain; else unchanged."""
    kind = schema.get("type")
    if kind == "array":
        if isinstance(value, str) and value.strip().startswith("["):
            value = mended(value)
        items = schema.get("items", {})
        return [_typed(item, items) for item in (value if isinstance(value, list) else [value])]
    if kind == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if kind in ("integer", "number", "boolean", "object") and isinstance(value, str):
        try:
            return loads(value.strip())
        except ValueError:
            return value
    return value


def _candidates(proposal: Proposal, tools: Tools) -> Iterator[tuple[Any, Any]]:
    """(name, arguments) pairs that may be the call, the surest first."""
    raw = proposal.raw[:MAX_CHARS]
    for call in proposal.tool_calls:
        yield function(call).get("name"), function(call).get("arguments")
    for item in json_objects(raw):
        yield from _named(item)
    yield from _python_calls(raw, tools)
    for rest, below in reversed(blocks(raw)):
        yield from _under_header(rest, below, tools)
    for line_number, line in enumerate(lines := raw.split("\n")):
        if find_tool(line, tools) is not None:
            yield line, _body(lines[line_number + 1 :])


def _named(item: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    inner = next((item[k] for k in _NAME_KEYS if k in item), None)
    if isinstance(inner, Mapping):
        item, inner = inner, next((inner[k] for k in _NAME_KEYS if k in inner), None)
    arguments = next((item[k] for k in _ARGUMENT_KEYS if k in item), None)
    if arguments is None:
        arguments = {k: v for k, v in item.items() if k not in (*_NAME_KEYS, "thought", "reason", "id", "type")}
    yield inner, arguments


def _under_header(rest: str, below: Sequence[str], tools: Tools) -> Iterator[tuple[Any, Any]]:
    """``Action: Execute SQL`` with its arguments behind or below it; the name may have several words."""
    words = rest.strip(" \t\r*`").split()
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        if find_tool(name, tools) is not None:
            yield name, _body([" ".join(words[count:]), *below])


def _body(lines: Sequence[str]) -> str:
    text = "\n".join(lines).strip()
    inside = fences(text)
    return inside[0] if inside else text


def _python_calls(raw: str, tools: Tools) -> Iterator[tuple[str, Any]]:
    """``name(key="value")``, read as a Python expression and never run; positional values by the schema's order."""
    for tool in tools:
        name = str(function(tool).get("name"))
        for match in re.finditer(rf"(?<!\w){re.escape(name)}\s*\(", raw):
            node = _call_node(raw[match.start() :])
            if node is None:
                continue
            properties = list(function(tool).get("parameters", {}).get("properties", {}))
            try:
                values = dict(zip(properties, map(ast.literal_eval, node.args), strict=False))
                values |= {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
            except (ValueError, TypeError, RecursionError, MemoryError):
                continue
            yield name, values


def _call_node(text: str) -> ast.Call | None:
    """The shortest prefix of ``text`` that is a Python call."""
    for end in [i + 1 for i, char in enumerate(text[:4000]) if char == ")"][:20]:
        try:
            node = ast.parse(text[:end], mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return node if isinstance(node, ast.Call) else None
    return None


def _lone_value(raw: str, tools: Tools) -> Call | None:
    """A code block without a tool's name, or a reply that is one JSON list, where only one tool can be meant."""
    blocks_found = fences(raw)
    text, kind = (blocks_found[0], "string") if blocks_found else (raw.strip(), "array")
    if text.startswith("[") and text.endswith("]"):
        kind = "array"
    elif kind == "array":
        return None
    fitting = [t for t in tools if (sole := sole_parameter(t)) and _kind(t, sole) == kind]
    if len(fitting) != 1:
        return None
    arguments = fit(text, fitting[0])
    return None if arguments is None else {"name": function(fitting[0])["name"], "arguments": arguments}


def _kind(tool: Mapping[str, Any], parameter: str) -> Any:
    return function(tool).get("parameters", {}).get("properties", {}).get(parameter, {}).get("type", "string")


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())
