"""Find the tool call that a reply means, and mend its arguments by the tool's schema. Used by the ``rescue`` kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harnesslab.harness.actionlines import OBSERVED, RESULT, Block, blocks, without
from harnesslab.harness.codeblocks import lone_values, own_blocks
from harnesslab.harness.context import Proposal
from harnesslab.harness.dialects import MOST, json_calls, marked_calls
from harnesslab.harness.fitting import Call, find_tool, fitted, json_value, strict
from harnesslab.harness.pycalls import python_calls
from harnesslab.harness.readers import Written, json_at, named, tagged
from harnesslab.harness.repair import MAX_CHARS, Ambiguous, fences
from harnesslab.harness.toolschema import (
    Tools,
    function,
    name_of,
    properties,
    required,
    sole_parameter,
    types,
)

_CALL_LINE = re.compile(
    r"(?:(?:next |final )?(?:action|call|tool)[*_`]*\s*:[*_`\s]*)?(?P<call>(?P<name>[A-Za-z_][\w.]{0,128})\s*\(.*)",
    re.IGNORECASE,
)
_BOLD_HEADER = re.compile(
    r"^[ \t>]*(?:\d+\.[ \t]+)?[*_#`]+[ \t]*(action(?:[ \t_]*input)?)[ \t*_`]*:[*_`]*", re.IGNORECASE | re.MULTILINE
)


def find_call(proposal: Proposal, tools: Tools) -> Call | None:
    """The tool call that a reply means: a broken native call, a published dialect, ReAct, JSON, or a lone code block.

    Raises Ambiguous where several different calls are meant. Calls behind an invented observation do not count.
    """
    native = _native(proposal, tools)
    raw = proposal.raw
    if len(raw) > MAX_CHARS:
        return native
    calls, blocks = written(raw, tools)
    if native is not None:
        if any(_meant(one, tools) != native for one in _before_observation(raw, calls + blocks)):
            raise Ambiguous
        return native
    found = _before_observation(raw, calls + blocks if calls else list(lone_values(raw, tools)))
    if proposal.cut and any(not call.whole for call in found):
        return None
    meant = _different(_meant(one, tools) for one in found)
    if len(meant) > 1:
        raise Ambiguous
    return meant[0] if meant else None


def _native(proposal: Proposal, tools: Tools) -> Call | None:
    """The first native call, where its arguments or its name can be mended."""
    for call in proposal.tool_calls[:1]:
        inner = function(call)
        arguments = next((inner[key] for key in ("arguments", "input", "parameters", "args") if key in inner), None)
        return fitted(inner.get("name"), arguments, tools, cut=proposal.cut)
    return None


def written(raw: str, tools: Tools) -> tuple[list[Written], list[Written]]:
    """The calls of a reply that name their tool, and the code blocks outside them that only one tool can take."""
    text = _unmarked(raw)
    found = _marked(raw, tools)
    headers: list[Block] = []
    for block, calls in _headers(text, found, tools):
        found += calls
        headers += [block] if calls else []
    outside = without(text, headers)
    for one in found:
        outside = outside[: one.start] + re.sub(r"[^\n]", " ", outside[one.start : one.end]) + outside[one.end :]
    spans = [(one.start, one.end) for one in found]
    lines, code = (
        [one for one in more if not any(start <= one.start < end for start, end in spans)]
        for more in (_own_lines(outside, tools), own_blocks(outside, tools))
    )
    return found + lines, code


def rival(action: Call, raw: str, read: Sequence[Block], tools: Tools) -> str:
    """Whether a reply asks for anything but ``action``, which was read from these blocks: ``other``, ``earlier`` or empty.

    ``earlier``: in front of an observation that the model invented, so that ``action`` is not the first one.
    """
    if len(raw) > MAX_CHARS:
        return ""
    calls, code = written(without(raw, read), tools)
    others = calls + code
    if not others:
        return ""
    start = len("\n".join(raw.split("\n")[: read[0].line]))
    own = Written(action["name"], action["arguments"], start, start)
    kept = _before_observation(raw, [own, *others])
    if own not in kept:
        return "earlier"
    return "other" if len(_different(_meant(one, tools) for one in kept)) > 1 else ""


def contradicted(calls: Sequence[Mapping[str, Any]], raw: str, tools: Tools) -> bool:
    """Whether the text beside native calls asks for a call that is not among them."""
    if not raw.strip() or len(raw) > MAX_CHARS:
        return False
    native = [fitted(function(call).get("name"), function(call).get("arguments"), tools) for call in calls]
    named_ones, code = written(raw, tools)
    return any(_meant(one, tools) not in native for one in _before_observation(raw, named_ones + code))


def _meant(one: Written, tools: Tools) -> Call | None:
    return fitted(one.name, one.arguments, tools, mended=one.mended or not one.whole)


def _different(calls: Iterable[Call | None]) -> list[Call | None]:
    found: list[Call | None] = []
    for call in calls:
        if call not in found:
            found.append(call)
    return found


def _marked(raw: str, tools: Tools) -> list[Written]:
    """Calls that a dialect marks, a tag with a tool's name, and JSON objects that name one."""
    found = marked_calls(raw)
    found += [one for one in _tags(raw, tools) if not any(call.start <= one.start < call.end for call in found)]
    # An object with a name is a call only if it has arguments, or the name is a tool's.
    return found + [one for one in json_calls(raw, found) if one.sure or find_tool(one.name, tools) is not None]


def _tags(raw: str, tools: Tools) -> Iterator[Written]:
    """``<run_sql><query>SELECT 1</query></run_sql>``: the tool's name as a tag, each argument in one, or the only one."""
    for tool in tools:
        name = name_of(tool)
        if f"<{name}" not in raw:
            continue
        keys = "|".join(map(re.escape, properties(tool))) or "(?!)"
        read = tagged(f"<(?P<key>{keys})>", f"</(?:{keys})>", f"</{re.escape(name)}>")
        for number, match in enumerate(re.finditer(f"<(?P<name>{re.escape(name)})(?:>|[ \\t]*(?P<empty>/)>)", raw)):
            if number >= MOST:
                break
            if match["empty"]:
                yield Written(name, {}, match.start(), match.end())
                continue
            calls = list(read(raw, match))
            sole, end = sole_parameter(tool), raw.find(f"</{name}>", match.end())
            if calls:
                yield from calls
            elif sole and end >= 0 and types(tool, sole) == ("string",):
                body = raw[match.end() : end].removeprefix("\n").removesuffix("\n")
                yield Written(name, {sole: body}, match.start(), end + len(name) + 3)


def _headers(text: str, found: Sequence[Written], tools: Tools) -> Iterator[tuple[Block, list[Written]]]:
    """The calls of each ``Action:`` header that is not part of a call which was ``found`` already."""
    position = at = 0
    lines = text.split("\n")
    for block in blocks(text):
        position += sum(len(line) + 1 for line in lines[at : block.line])
        at = block.line
        empty = not block.rest.strip() and not any(line.strip() for line in block.below)
        if empty or any(one.start <= position < one.end for one in found):
            continue
        end = position + len(lines[at])
        yield (
            block,
            [
                Written(name, arguments, position, end, whole)
                for name, arguments, whole in _under_header(block.rest, block.below, tools)
            ],
        )


def _unmarked(raw: str) -> str:
    """The reply with headers as the parser knows them: ``**Action:** x`` as ``Action: x``, at the same positions."""
    return _BOLD_HEADER.sub(lambda match: f"{match[1]}:".ljust(len(match[0])), raw)


def _under_header(rest: str, below: Sequence[str], tools: Tools) -> Iterator[tuple[Any, Any, bool]]:
    """``Action: Execute SQL`` with its arguments behind or below it; the name may have several words."""
    if rest.lstrip().startswith(("{", "[")):
        return
    words = rest.strip(" \t\r*`").split()
    text = "\n".join(below).strip()
    call = python_calls(rest.strip(" \t\r*`"))
    if len(call) == 1 and (called := find_tool(call[0][0], tools)) is not None:
        if call[0][1] or not required(called):
            yield (*call[0], True)
            return
        words = [name_of(called)]  # book() above its Action Input
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
        # Without an end of its argument the call was begun, and what it means is not known.
        yield (None, None, False) if value is None else (name_of(tool), value, whole)
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
        talk = text[: found[0].start].strip()
        introduced = not talk or (talk.endswith(":") and "\n" not in talk)
        return (found[0].content, found[0].closed) if introduced else (None, False)
    if re.search(r"^[ \t]*(?:```|~~~)", text, re.MULTILINE):
        return None, False  # an empty block, or one without its content
    if "\n\n" in text.strip():
        head, _, rest = text.strip().partition("\n\n")
        # Talk below an argument is left out only where the argument has an end of its own.
        if not head.rstrip().endswith((";", "}", "]")):
            return (None, False) if rest.strip() else (head, False)
        return head, True
    return text, strict(text) is not None


def _objects_in(text: str) -> Iterator[tuple[tuple[Any, Any], bool]]:
    for fence in fences(text):
        value = json_value(fence.content)
        for item in value if isinstance(value, list) else [value]:
            for name, arguments, _sure in named(item):
                yield (name, arguments), fence.closed


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
            yield from _below_name(raw, lines, number, start, position, tools)
    for block in inside[:MOST]:
        for name, arguments in python_calls(block.content):
            if find_tool(name, tools) is not None:
                yield Written(name, arguments, block.start, block.end, block.closed)


def _below_name(
    raw: str, lines: Sequence[str], number: int, start: int, position: int, tools: Tools
) -> Iterator[Written]:
    """A block, or JSON, directly below a line that is a tool's name."""
    name = lines[number].strip(" \t\r*`:#")
    below = next((number for number in range(number + 1, len(lines)) if lines[number].strip()), None)
    if below is None:
        return
    under = fences("\n".join(lines[below:]))
    if under and under[0].start == 0:
        # ChatGLM3 writes the arguments of the tool as those of tool_call().
        call = [arguments for called, arguments in python_calls(under[0].content) if called == "tool_call"]
        yield Written(
            name, call[0] if len(call) == 1 else under[0].content, start, position + under[0].end, under[0].closed
        )
    elif lines[below].startswith("{") and (found := json_at(raw, raw.index("{", position))) is not None:
        yield Written(name, found.value, start, found.end, found.whole)


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
    marks = [match.start() for match in RESULT.finditer(raw)]
    position = 0
    for line in raw.split("\n"):
        if OBSERVED.match(line):
            marks.append(position)
        position += len(line) + 1
    outside = (m for m in sorted(marks) if m >= calls[0].end and not any(c.start <= m < c.end for c in calls))
    stop = next(outside, len(raw))
    return [call for call in calls if call.start <= stop]
