"""Find the tool call that a reply means, and mend its arguments by the tool's schema. Used by the ``rescue`` kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harnesslab.harness.actionlines import OBSERVED, blocks
from harnesslab.harness.context import Proposal
from harnesslab.harness.dialects import MOST, Written, json_calls, marked_calls, named, python_calls
from harnesslab.harness.repair import MAX_CHARS, Ambiguous, fences, mended
from harnesslab.harness.toolschema import (
    Tools,
    function,
    name_of,
    properties,
    required,
    resolved,
    schema_root,
    sole_parameter,
    types,
    types_of,
)
from harnesslab.plainjson import loads, too_deep

Call = dict[str, Any]

_FAMILY = {
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "shell-session", "terminal", "powershell"), "shell"),
    **dict.fromkeys(("sql", "sqlite", "sqlite3", "mysql", "postgresql", "postgres", "pgsql", "tsql", "plsql"), "sql"),
    **dict.fromkeys(("python", "python3", "py", "ipython"), "python"),
    **dict.fromkeys(
        ("output", "text", "txt", "plaintext", "log", "diff", "yaml", "yml", "xml", "html", "csv", "markdown", "md"),
        "data",
    ),
}
"""What a fence's language tag says of its content."""
_TAKES = (("command", "shell"), ("cmd", "shell"), ("bash", "shell"), ("shell", "shell"), ("sql", "sql"))
_RESULT = re.compile(
    r"<\|?/?(?:tool_(?:response|result|output)s?|function_(?:results?|response)|observation|ipython)\|?>|\[TOOL_RESULTS\]|"
    r"<[|｜]tool[_▁]outputs?[_▁](?:begin|end)[|｜]>|<\|im_start\|>(?:user|tool)|<\|start\|>functions|✿RESULT✿|"
    r"<\|start_header_id\|>(?:ipython|tool|user)"
)
"""The marks behind which a model goes on in the tool's or the user's name."""
_CALL_LINE = re.compile(
    r"(?:(?:next |final )?(?:action|call|tool)[*_`]*\s*:[*_`\s]*)?(?P<call>(?P<name>[A-Za-z_][\w.]{0,128})\s*\(.*)",
    re.IGNORECASE,
)
_ORDER = ""


def find_call(proposal: Proposal, tools: Tools) -> Call | None:
    """The tool call that a reply means: a broken native call, a published dialect, ReAct, JSON, or a lone code block.

    Raises Ambiguous where several different calls are meant. Calls behind an invented observation do not count.
    """
    for call in proposal.tool_calls[:1]:
        inner = function(call)
        arguments = next((inner[key] for key in ("arguments", "input", "parameters", "args") if key in inner), None)
        found = _fitted(inner.get("name"), arguments, tools, cut=proposal.cut)
        if found is not None:
            return found
    raw = proposal.raw
    if len(raw) > MAX_CHARS:
        return None
    for written in (_explicit(raw, tools), _own_lines(raw, tools), _lone_value(raw, tools)):
        calls = _before_observation(raw, list(written))
        if proposal.cut and any(not call.whole for call in calls):
            return None
        meant: list[Call | None] = []
        for one in calls:
            means = _fitted(one.name, one.arguments, tools)
            if means not in meant:
                meant.append(means)
        if len(meant) > 1:
            raise Ambiguous
        if meant and meant[0] is not None:
            return meant[0]
        if meant:
            return None
    return None


def find_tool(name: Any, tools: Tools) -> Mapping[str, Any] | None:
    """The tool of this name; ``functions.`` before it, ``:0`` behind it, case and punctuation do not count."""
    if not isinstance(name, str):
        return None
    name = re.sub(r":\d+$", "", name.strip())
    exact = [tool for tool in tools if name and name_of(tool) == name]
    if exact:
        return exact[0]
    for form in (name, re.sub(r"^.*[.:/]", "", name)):
        plain = _plain(form)
        found = [tool for tool in tools if plain and _plain(name_of(tool)) == plain]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def fit(arguments: Any, tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """``arguments`` in the shape of the tool's schema: types mended, the only argument renamed; None if hopeless."""
    sole, known = sole_parameter(tool), properties(tool)
    if isinstance(arguments, str) and arguments.strip().startswith(("{", "[")):
        value = _json(arguments)
        arguments = value if isinstance(value, (dict, list)) else arguments
    if isinstance(arguments, Mapping) and _ORDER in arguments:
        arguments = _by_position(arguments, tool)
    if arguments is None or arguments == "":
        return None if required(tool) else {}
    if not isinstance(arguments, Mapping):
        if sole is None:
            return None
        arguments = {sole: arguments}
    elif sole is not None and len(arguments) == 1 and known and not set(arguments) & set(known):
        arguments = {sole: next(iter(arguments.values()))}
    if (sole is not None and sole not in arguments) or too_deep(arguments):
        return None
    return {str(name): _typed(value, known.get(name, {}), schema_root(tool)) for name, value in arguments.items()}


def _fitted(name: Any, arguments: Any, tools: Tools, cut: bool = False) -> Call | None:
    tool = find_tool(name, tools)
    if tool is None or (cut and isinstance(arguments, str) and _strict(arguments) is None):
        return None
    fitted = fit(arguments, tool)
    return None if fitted is None else {"name": name_of(tool), "arguments": fitted}


def _by_position(arguments: Mapping[str, Any], tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Positional values by the schema's order; None where there are too many, or one is given twice."""
    names = [*required(tool), *(name for name in properties(tool) if name not in required(tool))]
    order = list(properties(tool)) or names
    given = arguments[_ORDER]
    if len(given) > len(order) or set(order[: len(given)]) & set(arguments):
        return None
    named_ones = {key: value for key, value in arguments.items() if key != _ORDER}
    return {**dict(zip(order, given, strict=False)), **named_ones}


def _typed(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> Any:
    """``value`` in the type that the schema asks for, where the way there is plain; else unchanged."""
    spec = resolved(schema, root)
    kinds = types_of(schema, root)
    if depth > 8 or not kinds:
        return value
    if "array" in kinds and not ("string" in kinds and isinstance(value, str)):
        if isinstance(value, str) and value.strip().startswith("["):
            value = _json(value) or value
        items = spec.get("items", {})
        listed = value if isinstance(value, list) else [value]
        return [_typed(item, items if isinstance(items, Mapping) else {}, root, depth + 1) for item in listed]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and kinds == ("string",):
        return str(value)
    if isinstance(value, str) and "string" not in kinds:
        word = value.strip()
        try:
            return loads({"True": "true", "False": "false", "None": "null"}.get(word, word))
        except ValueError:
            return value
    return value


def _explicit(raw: str, tools: Tools) -> Iterator[Written]:
    """Calls that are marked as such: a dialect, a JSON object with a tool's name, an ``Action:`` header."""
    marked = marked_calls(raw)
    yield from marked
    listed = json_calls(raw, marked)
    yield from listed
    spans = [(one.start, one.end) for one in (*marked, *listed)]
    position = 0
    for rest, below in blocks(_unmarked(raw)):
        position = max(0, raw.find(rest.strip("\r\n *`"), position))
        inside = any(start <= position < end for start, end in spans)
        for name, arguments, whole in () if inside else _under_header(rest, below, tools):
            yield Written(name, arguments, position, position + len(rest), whole)


def _unmarked(raw: str) -> str:
    """The reply with headers as the parser knows them: ``**Action:** x`` as ``Action: x``."""
    return re.sub(r"(?im)^[ \t>]*(?:\d+\.[ \t]+)?[*_#`]+[ \t]*(action(?:[ \t_]*input)?)[ \t*_`]*:[*_`]*", r"\1:", raw)


def _under_header(rest: str, below: Sequence[str], tools: Tools) -> Iterator[tuple[Any, Any, bool]]:
    """``Action: Execute SQL`` with its arguments behind or below it; the name may have several words."""
    words = rest.strip(" \t\r*`").split()
    text = "\n".join(below).strip()
    call = python_calls(rest.strip(" \t\r*`"))
    if len(call) == 1 and find_tool(call[0][0], tools) is not None:
        yield (*call[0], True)
        return
    bracketed = re.fullmatch(r"\s*([\w. -]{1,64})\[(.*)\]\s*", rest)
    if bracketed and find_tool(bracketed[1], tools) is not None:
        yield bracketed[1], bracketed[2], True
        return
    for count in range(min(len(words), 6), 0, -1):
        tool = find_tool(" ".join(words[:count]), tools)
        if tool is None:
            continue
        rest_of_line = " ".join(words[count:])
        value, whole = _argument(
            re.sub(r"(?i)^action[ _]*input\s*:\s*", "", "\n".join(filter(None, (rest_of_line, text))))
        )
        if value is not None:
            yield name_of(tool), value, whole
        return
    if any(word for word in words):
        for one, whole in _objects_in(text):
            yield one[0], one[1], whole


def _argument(text: str) -> tuple[Any, bool]:
    """The argument below a header: the content of its only block, JSON, or a line of text; None for talk."""
    found = fences(text)
    contents = {fence.content for fence in found}
    if len(contents) > 1:
        raise Ambiguous
    if found:
        return found[0].content, found[0].closed
    if "\n\n" in text.strip():
        head, _, rest = text.strip().partition("\n\n")
        # Talk below an argument is left out only where the argument has an end of its own.
        if not head.rstrip().endswith((";", "}", "]")):
            return (None, False) if rest.strip() else (head, False)
        return head, True
    return text, False


def _objects_in(text: str) -> Iterator[tuple[tuple[Any, Any], bool]]:
    for fence in fences(text):
        value = _json(fence.content)
        for item in value if isinstance(value, list) else [value]:
            call = named(item)
            if call is not None:
                yield call, fence.closed


def _own_lines(raw: str, tools: Tools) -> Iterator[Written]:
    """Calls without a mark, each on lines of its own: ``name(a=1)``, or a tool's name above a block."""
    position = looked = 0
    lines = raw.split("\n")
    inside = fences(raw)
    waiting = iter(inside)
    fence = next(waiting, None)
    for number, line in enumerate(lines):
        start, position = position, position + len(line) + 1
        while fence is not None and fence.end <= start:
            fence = next(waiting, None)
        if (fence is not None and fence.start <= start) or looked >= MOST:
            continue
        match = _CALL_LINE.fullmatch(line.strip(" \t\r>*•-_`"))
        if match is not None and find_tool(match["name"], tools) is not None:
            looked += 1
            text = match["call"].rstrip(" *`.;,")
            for name, arguments in python_calls(text) or python_calls(_rest(lines, number, match["call"])):
                yield Written(name, arguments, start, start + len(line))
        elif line.strip() and len(line) < 200 and find_tool(line.strip(" \t\r*`:#"), tools) is not None:
            looked += 1
            below = next((number for number in range(number + 1, len(lines)) if lines[number].strip()), None)
            under = fences("\n".join(lines[below:])) if below is not None else []
            if under and under[0].start == 0:
                yield Written(
                    line.strip(" \t\r*`:#"), under[0].content, start, position + under[0].end, under[0].closed
                )
    for block in inside[:MOST]:
        for name, arguments in python_calls(block.content):
            if find_tool(name, tools) is not None:
                yield Written(name, arguments, block.start, block.end, block.closed)


def _rest(lines: Sequence[str], number: int, first: str) -> str:
    """A call that goes on over several lines, up to an empty one."""
    own = [first]
    for line in lines[number + 1 : number + 200]:
        if not line.strip():
            break
        own.append(line)
        if line.rstrip().endswith(")"):
            break
    return "\n".join(own) if len(own) > 1 else ""


def _before_observation(raw: str, calls: list[Written]) -> list[Written]:
    """The calls up to the first invented observation behind the first of them."""
    if len(calls) < 2:
        return calls
    calls = sorted(calls, key=lambda call: call.start)
    marks = [match.start() for match in _RESULT.finditer(raw)]
    position = 0
    for line in raw.split("\n"):
        if OBSERVED.match(line):
            marks.append(position)
        position += len(line) + 1
    outside = (m for m in sorted(marks) if m >= calls[0].end and not any(c.start <= m < c.end for c in calls))
    stop = next(outside, len(raw))
    return [call for call in calls if call.start <= stop]


def _lone_value(raw: str, tools: Tools) -> Iterator[Written]:
    """A code block without a tool's name, or a reply that is one JSON list, where only one tool can be meant."""
    whole = raw.strip()
    if whole.startswith("[") and whole.endswith("]"):
        yield from _for_only(tools, "array", "", whole, 0, len(raw), True)
    for fence in fences(raw):
        text = fence.content.strip()
        if text.startswith("{") and fence.language in ("", "json", "jsonc", "json5"):
            continue
        kind = "array" if text.startswith("[") and _json(text) is not None else "string"
        yield from _for_only(tools, kind, fence.language, fence.content, fence.start, fence.end, fence.closed)


def _for_only(
    tools: Tools, kind: str, language: str, text: str, start: int, end: int, whole: bool
) -> Iterator[Written]:
    """The text as the argument of the only tool that takes one such value."""
    fitting = [t for t in tools if (sole := sole_parameter(t)) and kind in types(t, sole)]
    family = _FAMILY.get(language, "")
    if len(fitting) != 1 or (kind == "string" and family == "data") or (kind == "string" and language == "json"):
        return
    sole = sole_parameter(fitting[0]) or ""
    takes = next((takes for word, takes in _TAKES if word in f"{sole} {name_of(fitting[0])}".casefold()), family)
    if family and family != takes:
        return
    yield Written(name_of(fitting[0]), {sole: text} if kind == "string" else text, start, end, whole)


def _json(text: str) -> Any:
    value = _strict(text)
    return mended(text.strip()) if value is None else value


def _strict(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return None


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())
