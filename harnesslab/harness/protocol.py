"""From a reply to an action and back: the strict half. Repairs are the ``rescue`` kind's job.

=======  ==========================  ===============================================================
protocol without tools               with tools
=======  ==========================  ===============================================================
text     ``Action: go to table 1``   ``Action: name`` and then a JSON object of arguments; for a tool with one
                                     required parameter also a fenced block, or plain text without an empty line
json     ``{"action": "..."}``       ``{"name": "...", "arguments": {...}}``
tools    as text                     OpenAI ``tool_calls``; the first one counts, the others are recorded
=======  ==========================  ===============================================================

ReAct (``Action: name``, ``Action Input: ...``) is read in all three. An action of several lines goes into a fence below
``Action:``. Whatever follows the action, the JSON object or the closing fence is ignored, and so is everything after an
observation that the model invented. A reply with two different actions is executed as neither of them, also where one of
them is written in a form that only ``rescue`` reads. An action that the token limit may have cut off is not executed. For each action ``a`` that is not blank, ``parse(render(a)) == a``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from harnesslab.harness.actionlines import FENCE, INPUT, MANY, Block, blocks, fence_content
from harnesslab.harness.context import Action, Proposal, Protocol
from harnesslab.harness.repair import text_rival
from harnesslab.harness.toolrepair import contradicted, rival
from harnesslab.harness.toolschema import (
    Tools,
    function,
    name_of,
    properties,
    required,
    schema_root,
    sole_parameter,
    types,
)
from harnesslab.plainjson import MAX_DEPTH, leading_json, loads, too_deep

__all__ = ["Tools", "function", "sole_parameter"]

_INLINE_INPUT = re.compile(r"[ \t,;]action[ \t_]*\d{0,3}[ \t]*input[ \t]*\d{0,3}[ \t]*:", re.IGNORECASE)
_LABEL = re.compile(r"[ \t]*(?:thought|final answer|question)[ \t]*\d{0,3}[ \t]*:", re.IGNORECASE)
_BARE_FENCE = re.compile(r"[ \t]*`{3,}")
_OBJECT = re.compile(r"\{\s*[\"}]")
_NOTHING = frozenset({"", "none", "null", "n/a", "{}"})
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


def parse(
    raw: str,
    tool_calls: Sequence[Mapping[str, Any]],
    protocol: Protocol,
    tools: Tools | None = None,
    *,
    cut: bool = False,
) -> Proposal:
    """Read one reply. Never raises: what cannot be read has ``action`` None and a ``problem`` for the agent.

    ``cut``: the token limit ended the reply, so that an action at its very end may lack a part.
    """
    calls = tuple(dict(call) for call in tool_calls if isinstance(call, Mapping))
    action: Action | None
    if protocol == "tools" and tools:
        action, problem = (
            _from_calls(calls, raw, tools) if calls else _react(raw, tools, cut, "Your reply calls no tool.")
        )
    elif protocol == "json":
        action, problem = _from_json(raw, tools, cut)
    else:
        action, problem = _from_text(raw, tools, cut)
    if action is not None:
        return Proposal(raw, action, "", False, calls, cut)
    cause = "ambiguous" if problem == AMBIGUOUS else "truncated" if cut else "form"
    return Proposal(raw, None, f"{problem} {expected_form(protocol, tools)}", False, calls, cut, cause)


AMBIGUOUS = "Your reply holds several different actions; none of them was executed."
_EARLIER = "The first action of your reply has another form, and your reply goes on as if it had been executed."
_CUT_OFF = "Your reply was cut off before its action was complete."
_Read: TypeAlias = "tuple[Action | None, str]"
"""An action, or None and what is wrong, in words for the agent."""


def render(action: Action, protocol: Protocol, tools: Tools | None = None) -> str:
    """The reply text that :func:`parse` reads as ``action``. In ``tools`` it is the text form; see :func:`call`."""
    if protocol == "json":
        return dumps(action if isinstance(action, dict) else {"action": action})
    if isinstance(action, str):
        plain = action == action.strip() and "\n" not in action and "\r" not in action and action[:3] != "```"
        return f"Action: {action}" if plain else f"Action:\n{fenced(action)}"
    name, arguments = action["name"], action.get("arguments", {})
    tool = next((t for t in tools or () if name_of(t) == name), None)
    sole = sole_parameter(tool) if tool is not None else None
    if tool is not None and sole and list(arguments) == [sole] and types(tool, sole) == ("string",):
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


def tool_named(name: Any, tools: Tools) -> Mapping[str, Any] | None:
    """The tool of exactly this name."""
    return next((tool for tool in tools if isinstance(name, str) and name and name_of(tool) == name), None)


def _from_text(raw: str, tools: Tools | None, cut: bool) -> _Read:
    found = blocks(raw)
    if not found:
        return None, "No line of your reply starts with 'Action:'."
    if len(found) >= MANY:
        return None, AMBIGUOUS
    filled = [block for block in found if block.rest.strip() or any(line.strip() for line in block.below)]
    if not filled:
        return None, "Nothing follows 'Action:'."
    rest, below, _line = filled[-1]
    # Only the last block can reach the end of the reply, and only where no invented observation follows it.
    open_end = cut and raw.endswith(below[-1] if below else rest)
    read: list[_Read] = []
    for number, (rest, below, _line) in enumerate(filled, 1):
        at_end = open_end and number == len(filled)
        one = _tool_text(rest, below, tools, at_end) if tools else _plain_text(rest, below, at_end)
        if one not in read:
            read.append(one)
    return _alone(read[0], raw, found, tools) if len(read) == 1 else (None, AMBIGUOUS)


def _alone(read: _Read, raw: str, found: Sequence[Block], tools: Tools | None) -> _Read:
    """What was read from the blocks ``found``, unless the reply asks for another action in another form."""
    action = read[0]
    if action is None:
        return read
    other = text_rival(action, raw, found) if isinstance(action, str) else rival(action, raw, found, tools or ())
    return {"": read, "other": (None, AMBIGUOUS), "earlier": (None, _EARLIER)}[other]


def _react(raw: str, tools: Tools, cut: bool, otherwise: str) -> _Read:
    """ReAct in a protocol that has another form; only where it is whole, with its ``Action Input:``."""
    given = any(
        _INLINE_INPUT.search(rest) or any(INPUT.fullmatch(line) for line in below) for rest, below, _line in blocks(raw)
    )
    return _from_text(raw, tools, cut) if given else (None, otherwise)


def _plain_text(rest: str, below: Sequence[str], at_end: bool) -> _Read:
    if not rest.strip() or FENCE.fullmatch(rest):
        content, used = fence_content([rest, *below])
        if content is None:
            return None, "The ``` block is not closed." if used else "Nothing follows 'Action:'."
        return (content, "") if content.strip() else (None, "The block after 'Action:' is empty.")
    action, argument = _split_input(rest, below)
    if argument is None:
        return (None, _CUT_OFF) if at_end and not any(line.strip() for line in below) else (rest.strip(), "")
    lines = [line.strip() for line in argument if line.strip()]
    value = lines[0] if lines else ""
    if value.casefold() in _NOTHING:
        return action, ""
    if (len(lines) > 1 and not _LABEL.match(lines[1])) or value.startswith(("{", "[", "`")):
        return None, "'Action Input:' is not used here; the whole action goes behind 'Action:'."
    return (None, _CUT_OFF) if at_end and len(lines) == 1 else (f"{action} {value}", "")


def _split_input(rest: str, below: Sequence[str]) -> tuple[str, list[str] | None]:
    """A ReAct header as (the action, the lines of its ``Action Input``); None where there is none."""
    inline = _INLINE_INPUT.search(rest)
    if inline is not None:
        return rest[: inline.start()].strip(" \t\r,;"), [rest[inline.end() :], *below]
    number = next((i for i, line in enumerate(below) if line.strip()), None)
    match = INPUT.fullmatch(below[number]) if number is not None else None
    if match is None or number is None:
        return rest.strip(), None
    return rest.strip(), [match[1], *below[number + 1 :]]


def _tool_text(rest: str, below: Sequence[str], tools: Tools, at_end: bool) -> _Read:
    header, argument = _split_input(rest, below)
    if argument is None:
        name, inline = _split_name(header, tools)
        lines = [inline, *below]
    else:
        name, lines = header, argument
    tool = tool_named(name, tools)
    if tool is None:
        return None, _unknown(name, tools)
    body, problem = _argument_text(lines)
    if problem:
        return None, problem
    sole = sole_parameter(tool)
    unfenced = "\n".join(lines).strip()
    if _OBJECT.match(body.lstrip()):
        try:
            value, _end = leading_json(body.lstrip())
        except ValueError:
            return None, f"The arguments of '{name}' are not one valid JSON object."
        strange = [key for key in value if key not in properties(tool)] if sole and not _open(tool) else []
        return (None, f"'{name}' has no argument '{strange[0][:60]}'.") if strange else _call(name, value)
    if not body.strip() or (argument is not None and body.strip().casefold() in _NOTHING):
        return (None, f"The arguments of '{name}' are missing.") if required(tool) else _call(name, {})
    if sole is None:
        return None, f"'{name}' needs a JSON object."
    if at_end and body.strip() == unfenced:
        return None, _CUT_OFF
    return _sole_value(tool, name, sole, body)


def _split_name(header: str, tools: Tools) -> tuple[str, str]:
    """The tool's name and what follows it on its line; a name may hold spaces."""
    for name in sorted(map(name_of, tools), key=len, reverse=True):
        if name and header.startswith(name) and not header[len(name) :][:1].strip():
            return name, header[len(name) :].lstrip()
    first, *more = header.split(maxsplit=1) or [""]
    return first, more[0] if more else ""


def _argument_text(lines: Sequence[str]) -> tuple[str, str]:
    """The text of an argument and no problem, or nothing and what is wrong with it."""
    content, used = fence_content(lines)
    if content is not None:
        return content, ""
    if used:
        return "", "The ``` block is not closed."
    plain: list[str] = []
    for line in lines:
        if plain and _LABEL.match(line):
            break
        plain.append(line)
    text = "\n".join(plain).strip()
    if _OBJECT.match(text):
        return text, ""
    if text.endswith("```"):  # the whole reply is in a block
        text = text.rstrip("`").rstrip()
    # Behind an empty line, talk and a second half of the argument look the same; neither may be executed by mistake.
    if re.search(r"\n[ \t\r]*\n", text) or any(_BARE_FENCE.match(line) for line in text.split("\n")):
        return "", "Give the argument alone in one ``` block, directly below 'Action:'."
    return text, ""


def _open(tool: Mapping[str, Any]) -> bool:
    """Whether the tool takes arguments that its schema does not name."""
    return bool(schema_root(tool).get("additionalProperties")) or not properties(tool)


def _call(name: str, arguments: Any) -> _Read:
    return {"name": name, "arguments": arguments}, ""


def _sole_value(tool: Mapping[str, Any], name: str, sole: str, body: str) -> _Read:
    kinds = types(tool, sole)
    if "string" in kinds:
        return _call(name, {sole: body})
    try:
        value = loads(body)
    except ValueError:
        return None, f"The argument '{sole}' of '{name}' is not valid JSON ({' or '.join(kinds)})."
    allowed = tuple(kind for word in kinds for kind in _TYPES.get(word, (object,)))
    if not isinstance(value, allowed) or (isinstance(value, bool) and "boolean" not in kinds):
        return None, f"The argument '{sole}' of '{name}' must be of type {' or '.join(kinds)}."
    return _call(name, {sole: value})


def _from_json(raw: str, tools: Tools | None, cut: bool) -> _Read:
    try:
        value = loads(raw)
    except ValueError:
        problem = "Your reply is not valid JSON."
        return _react(raw, tools, cut, problem) if tools else (None, problem)
    if not isinstance(value, dict):
        return None, "Your reply is not a JSON object."
    if not tools:
        action = value.get("action")
        return (action, "") if isinstance(action, str) and action.strip() else (None, "The key 'action' is missing.")
    return _checked(value.get("name"), value.get("arguments"), tools)


def _from_calls(calls: Sequence[Mapping[str, Any]], raw: str, tools: Tools) -> _Read:
    inner = function(calls[0])
    arguments = inner.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments) if arguments.strip() else {}
        except ValueError:
            return None, f"The arguments of '{str(inner.get('name'))[:60]}' are not valid JSON."
    read = _checked(inner.get("name"), arguments, tools)
    return (None, AMBIGUOUS) if read[0] is not None and contradicted(calls, raw, tools) else read


def _checked(name: Any, arguments: Any, tools: Tools) -> _Read:
    if tool_named(name, tools) is None:
        return None, _unknown(name, tools)
    if not isinstance(arguments, Mapping):
        return None, f"The arguments of '{name}' are not a JSON object."
    if too_deep(arguments):
        return None, f"The arguments of '{name}' are nested more than {MAX_DEPTH} levels deep."
    return _call(name, dict(arguments))


def _unknown(name: Any, tools: Tools) -> str:
    if not name:
        return "The name of the tool is missing."
    return f"There is no tool '{str(name)[:60]}'; the tools are: {', '.join(map(name_of, tools))}."
