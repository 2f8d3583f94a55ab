"""From a reply to an action and back: the strict half. Repairs are the ``rescue`` kind's job.

=======  ==========================  ===============================================================
protocol without tools               with tools
=======  ==========================  ===============================================================
text     ``Action: go to table 1``   ``Action: name`` and then a JSON object of arguments; for a tool with one
                                     required parameter also a fenced block or plain text to the end
json     ``{"action": "..."}``       ``{"name": "...", "arguments": {...}}``
tools    as text                     OpenAI ``tool_calls``; the first one counts
=======  ==========================  ===============================================================

In ``text`` the last line that starts with ``Action:`` (any case) counts. An action of several lines stands in a
fence below it. What follows the action, the JSON object or the closing fence is ignored. For each
action ``a`` that is not blank, ``parse(render(a)) == a``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harnesslab.harness.context import Action, Proposal, Protocol

Tools = Sequence[Mapping[str, Any]]

_ACTION = re.compile(r"[ \t]*action:(.*)", re.IGNORECASE | re.DOTALL)
_FENCE = re.compile(r"[ \t]*(`{3,})[ \t]*[\w+#.-]*[ \t]*\r?")
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "object": (dict,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "string": (str,),
}


def expected_form(protocol: Protocol, tools: Tools | None = None) -> str:
    """One or two sentences that tell an agent how a reply must look."""
    if tools and protocol == "tools":
        return "Call exactly one of the tools, with its arguments as a JSON object."
    if tools and protocol == "json":
        return 'Reply with one JSON object and nothing else: {"name": "<tool>", "arguments": {...}}.'
    if protocol == "json":
        return 'Reply with one JSON object and nothing else: {"action": "<your action>"}.'
    if not tools:
        return "Reply with one line of this form: Action: <your action>"
    form = "Reply with 'Action: <tool>' and, below it, the arguments as one JSON object."
    if any(sole_parameter(tool) for tool in tools):
        form += " For a tool with one required argument, the argument alone in a ``` block is enough."
    return form


def function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The function part of an OpenAI tool schema."""
    inner = tool.get("function", tool)
    return inner if isinstance(inner, Mapping) else {}


def sole_parameter(tool: Mapping[str, Any]) -> str | None:
    """The name of a tool's only required parameter; None where it has none or several."""
    required = function(tool).get("parameters", {}).get("required", ())
    return str(required[0]) if len(required) == 1 else None


def parse(
    raw: str, tool_calls: Sequence[Mapping[str, Any]], protocol: Protocol, tools: Tools | None = None
) -> Proposal:
    """Read one reply. Never raises: what cannot be read has ``action`` None and a ``problem`` for the agent."""
    action: Action | None
    problem: str
    if protocol == "tools" and tools:
        action, problem = _from_calls(tool_calls, tools)
    elif protocol == "json":
        action, problem = _from_json(raw, tools)
    else:
        action, problem = _from_text(raw, tools)
    if action is None:
        problem = f"{problem} {expected_form(protocol, tools)}"
    return Proposal(raw, action, problem, False, tuple(dict(call) for call in tool_calls))


def render(action: Action, protocol: Protocol, tools: Tools | None = None) -> str:
    """The reply text that :func:`parse` reads as ``action``. In ``tools`` it is the text form; see :func:`call`."""
    if protocol == "json":
        return dumps(action if isinstance(action, dict) else {"action": action})
    if isinstance(action, str):
        plain = action == action.strip() and "\n" not in action and "\r" not in action and action[:3] != "```"
        return f"Action: {action}" if plain else f"Action:\n{fenced(action)}"
    name, arguments = action["name"], action.get("arguments", {})
    tool = next((t for t in tools or () if function(t).get("name") == name), None)
    sole = sole_parameter(tool) if tool is not None else None
    if tool is not None and sole and list(arguments) == [sole] and _types(tool, sole) == ("string",):
        value = arguments[sole]
        if isinstance(value, str) and value.strip() and not value.lstrip().startswith("{"):
            return f"Action: {name}\n{fenced(value)}"
    return f"Action: {name}\n{dumps(arguments)}"


def call(action: dict[str, Any], identity: str) -> dict[str, Any]:
    """A tool call in OpenAI's form; ``identity`` is its id."""
    arguments = dumps(action.get("arguments", {}))
    return {"id": identity, "type": "function", "function": {"name": action["name"], "arguments": arguments}}


def fenced(text: str) -> str:
    """``text`` in a fence that is longer than any run of backticks in it."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}\n{text}\n{ticks}"


def dumps(value: Any) -> str:
    """Compact JSON on one line, as a model would write it."""
    return json.dumps(value, ensure_ascii=False)


def loads(text: str) -> Any:
    """Strict JSON. Raises ValueError, also for NaN, infinity, and nesting that is too deep."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def blocks(raw: str) -> list[tuple[str, list[str]]]:
    """Each ``Action:`` line as (rest of the line, the lines below it); lines inside its fence are not looked at."""
    lines = raw.split("\n")
    found: list[tuple[str, list[str]]] = []
    index = 0
    while index < len(lines):
        match = _ACTION.fullmatch(lines[index])
        if match is None:
            index += 1
            continue
        below = lines[index + 1 :]
        found.append((match[1], below))
        index += 1 + _skip(match[1], below)
    return found


def fence_content(lines: Sequence[str]) -> tuple[str | None, int]:
    """What a fence that opens on the first non-blank line holds, and how many lines it takes.

    (None, 0) without a fence; (None, n > 0) for one that is never closed.
    """
    start = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    opening = _FENCE.fullmatch(lines[start]) if start < len(lines) else None
    if opening is None:
        return None, 0
    for end in range(start + 1, len(lines)):
        closing = lines[end].strip()
        if len(closing) >= len(opening[1]) and not closing.strip("`"):
            return "\n".join(lines[start + 1 : end]), end + 1
    return None, start + 1


def _skip(rest: str, below: list[str]) -> int:
    """How many lines below an ``Action:`` line belong to its fence."""
    if "```" in rest:
        content, used = fence_content([rest[rest.index("```") :], *below])
        return used - 1 if content is not None else 0
    content, used = fence_content(below)
    return used if content is not None else 0


def _from_text(raw: str, tools: Tools | None) -> tuple[Action | None, str]:
    found = blocks(raw)
    if not found:
        return None, "No line of your reply starts with 'Action:'."
    rest, below = found[-1]
    if tools:
        return _tool_text(rest, below, tools)
    if not rest.strip() or _FENCE.fullmatch(rest):
        content, used = fence_content([rest, *below])
        if content is None:
            return None, "The ``` block is not closed." if used else "Nothing follows 'Action:'."
        return (content, "") if content.strip() else (None, "The block after 'Action:' is empty.")
    return rest.strip(), ""


def _tool_text(rest: str, below: list[str], tools: Tools) -> tuple[Action | None, str]:
    name, inline = [*rest.split(maxsplit=1), "", ""][:2]
    tool, problem = _find(name, tools)
    if tool is None:
        return None, problem
    lines = [inline, *below]
    content, used = fence_content(lines)
    if content is None and used:
        return None, "The ``` block is not closed."
    body = content if content is not None else "\n".join(lines).strip()
    sole = sole_parameter(tool)
    if body.lstrip().startswith("{"):
        arguments = _leading_object(body)
        if arguments is not None and (sole is None or set(arguments) <= set(_properties(tool))):
            return {"name": name, "arguments": arguments}, ""
        if sole is None:
            return None, f"The arguments of '{name}' are not one valid JSON object."
    if sole is not None and body.strip():
        return _sole_value(tool, name, sole, body)
    if not body.strip() and not function(tool).get("parameters", {}).get("required"):
        return {"name": name, "arguments": {}}, ""
    return None, f"The arguments of '{name}' are missing." if not body.strip() else f"'{name}' needs a JSON object."


def _sole_value(tool: Mapping[str, Any], name: str, sole: str, body: str) -> tuple[Action | None, str]:
    types = _types(tool, sole)
    if "string" in types:
        return {"name": name, "arguments": {sole: body}}, ""
    try:
        value = loads(body)
    except ValueError:
        return None, f"The argument '{sole}' of '{name}' is not valid JSON ({' or '.join(types)})."
    allowed = tuple(kind for word in types for kind in _TYPES.get(word, (object,)))
    if not isinstance(value, allowed) or (isinstance(value, bool) and "boolean" not in types):
        return None, f"The argument '{sole}' of '{name}' must be of type {' or '.join(types)}."
    return {"name": name, "arguments": {sole: value}}, ""


def _from_json(raw: str, tools: Tools | None) -> tuple[Action | None, str]:
    try:
        value = loads(raw)
    except ValueError:
        return None, "Your reply is not valid JSON."
    if not isinstance(value, dict):
        return None, "Your reply is not a JSON object."
    if not tools:
        action = value.get("action")
        return (action, "") if isinstance(action, str) and action.strip() else (None, "The key 'action' is missing.")
    return _checked(value.get("name"), value.get("arguments"), tools)


def _from_calls(calls: Sequence[Mapping[str, Any]], tools: Tools) -> tuple[Action | None, str]:
    if not calls:
        return None, "Your reply calls no tool."
    inner = function(calls[0])
    arguments = inner.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments) if arguments.strip() else {}
        except ValueError:
            return None, f"The arguments of '{inner.get('name')}' are not valid JSON."
    return _checked(inner.get("name"), arguments, tools)


def _checked(name: Any, arguments: Any, tools: Tools) -> tuple[Action | None, str]:
    tool, problem = _find(name, tools)
    if tool is None:
        return None, problem
    if not isinstance(arguments, dict):
        return None, f"The arguments of '{name}' are not a JSON object."
    return {"name": name, "arguments": arguments}, ""


def _find(name: Any, tools: Tools) -> tuple[Mapping[str, Any] | None, str]:
    names = [str(function(tool).get("name")) for tool in tools]
    if isinstance(name, str) and name in names:
        return tools[names.index(name)], ""
    if not name:
        return None, "The name of the tool is missing."
    return None, f"There is no tool '{str(name)[:60]}'; the tools are: {', '.join(names)}."


def _properties(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = function(tool).get("parameters", {}).get("properties", {})
    return properties if isinstance(properties, Mapping) else {}


def _types(tool: Mapping[str, Any], parameter: str) -> tuple[str, ...]:
    kind = _properties(tool).get(parameter, {}).get("type", "string")
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _leading_object(text: str) -> dict[str, Any] | None:
    try:
        value, _ = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
