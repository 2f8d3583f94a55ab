"""The published ways in which models write tool calls as text: one table, one reader a family. Used by ``rescue``.

A dialect is an opening mark and a reader that starts behind it. Readers only find; whether a call means a tool, and
which arguments it takes, is :mod:`~harnesslab.harness.toolrepair`'s question. Text is parsed and never run, and each
reader is linear in the reply. ``docs/reply-formats.md`` shows each of them with an example.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from harnesslab.harness.repair import extent, mended
from harnesslab.plainjson import leading_json

MOST = 32
"""Openings of one dialect that are looked at; a reply with more of them is a loop."""


class Written(NamedTuple):
    """A call as it is written: name, arguments (any JSON value), where it is, and whether its end is there."""

    name: Any
    arguments: Any
    start: int
    end: int
    whole: bool = True


Reader = Callable[[str, "re.Match[str]"], Iterator[Written]]


class Dialect(NamedTuple):
    """``opens`` is searched in the reply; ``read`` gets the reply and the match and yields the calls behind it."""

    name: str
    opens: re.Pattern[str]
    read: Reader


_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")
_ASIDE = frozenset({*_NAME_KEYS, "thought", "thoughts", "reason", "reasoning", "id", "type", "tool_call_id", "call_id"})
_CODE_END = re.compile(r"\n[ \t]*```|</?(?:code|tool_code|execute|\|python_end\||function_calls)>|<\|python_end\|>")
_SPACE = re.compile(r"\s*")
_LANGUAGE = re.compile(r"\s*(?:```[ \t]*\w*|<\|message\|>|\[ARGS\])?\s*")


def named(item: Any) -> tuple[Any, Any] | None:
    """A JSON object as (name, arguments) of a call; None where it names nothing."""
    if not isinstance(item, Mapping):
        return None
    inner = next((item[key] for key in _NAME_KEYS if key in item), None)
    if isinstance(inner, Mapping):
        item, inner = inner, next((inner[key] for key in _NAME_KEYS if key in inner), None)
    if not isinstance(inner, str) or not inner.strip():
        return None
    arguments = next((item[key] for key in _ARGUMENT_KEYS if key in item), None)
    if arguments is None:
        arguments = {key: value for key, value in item.items() if key not in _ASIDE}
    return inner, arguments


def json_at(raw: str, start: int) -> tuple[Any, int, bool] | None:
    """The JSON value at ``start``, its end, and whether it was whole; a broken one is mended if nothing of it is lost."""
    try:
        value, end = leading_json(raw, start)
        return value, end, True
    except ValueError:
        end, closed = extent(raw, start)
    value = mended(raw[start:end])
    return None if value is None else (value, end, closed)


def _objects(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """One JSON object, or a list of them, each with the name of its tool."""
    start = _LANGUAGE.match(raw, match.end()).end()  # type: ignore[union-attr]
    while raw[start : start + 1] in ("{", "["):
        found = json_at(raw, start)
        if found is None:
            return
        value, end, whole = found
        for item in value if isinstance(value, list) else [value]:
            call = named(item)
            if call is not None:
                yield Written(*call, match.start(), end, whole)
        start = _SPACE.match(raw, end).end()  # type: ignore[union-attr]
        start += raw[start : start + 1] == ";"
        start = _SPACE.match(raw, start).end()  # type: ignore[union-attr]


def _name_then_json(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """The name in the mark's group ``name``, its arguments as JSON behind the mark."""
    start = _LANGUAGE.match(raw, match.end()).end()  # type: ignore[union-attr]
    if raw[start : start + 1] != "{":
        return
    found = json_at(raw, start)
    if found is not None:
        value, end, whole = found
        yield Written(match["name"].strip(), value, match.start(), end, whole)


def _last(text: re.Pattern[str], raw: str, start: int, stop: int) -> re.Match[str] | None:
    found = list(text.finditer(raw, start, stop))
    return found[-1] if found else None


def _tagged(parameter: str, parameter_end: str, end: str) -> Reader:
    """The name in the mark; each argument between tags. A value runs to the last closing tag before the next argument."""
    opening, value_end, call_end = re.compile(parameter), re.compile(parameter_end), re.compile(end)

    def read(raw: str, match: re.Match[str]) -> Iterator[Written]:
        stop = _next(match, raw)
        close = _last(call_end, raw, match.end(), stop)
        body_end = close.start() if close else stop
        marks = list(opening.finditer(raw, match.end(), body_end))
        arguments: dict[str, Any] = {}
        whole = close is not None
        for mark, following in zip(marks, [*(m.start() for m in marks[1:]), body_end], strict=False):
            last = _last(value_end, raw, mark.end(), following)
            whole = whole and last is not None
            value = raw[mark.end() : last.start() if last else following]
            key = mark["key"].strip()
            if key in arguments:
                return
            arguments[key] = value.removeprefix("\n").removesuffix("\n")
        outside = raw[match.end() : marks[0].start() if marks else body_end]
        if not outside.strip():
            yield Written(match["name"].strip(), arguments, match.start(), close.end() if close else stop, whole)

    return read


def _next(match: re.Match[str], raw: str) -> int:
    """Where the next call of the same dialect opens, or the reply ends."""
    following = match.re.search(raw, match.end())
    return following.start() if following else len(raw)


def _old_invoke(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """``<tool_name>`` and ``<parameters>`` with one tag an argument."""
    stop = _next(match, raw)
    close = raw.rfind("</parameters>", match.end(), stop)
    body = raw[match.end() : close if close >= 0 else stop]
    arguments = {one[1]: html.unescape(one[2]) for one in re.finditer(r"<([\w.-]{1,64})>(.*?)</\1>", body, re.DOTALL)}
    yield Written(match["name"].strip(), arguments, match.start(), close if close >= 0 else stop, close >= 0)


def _python(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """Calls written as Python, up to the mark's closing partner; read as an expression, never run."""
    close = _CODE_END.search(raw, match.end())
    end = close.start() if close else len(raw)
    for name, arguments in python_calls(raw[match.end() : end]):
        yield Written(name, arguments, match.start(), end, close is not None)


def _list_of_calls(raw: str, match: re.Match[str]) -> Iterator[Written]:
    end, closed = extent(raw, match.end())
    for name, arguments in python_calls(raw[match.end() : end]) if closed else ():
        yield Written(name, arguments, match.start(), end)


def python_calls(text: str) -> list[tuple[str, Any]]:
    """The calls of a text that is nothing but calls: on lines, in a list, in print() or assigned; else none.

    The arguments are ``{"": [positional values]}`` together with the named ones; all of them literals.
    """
    try:
        tree = ast.parse(text.strip()[:20_000])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: list[tuple[str, Any]] = []
    for statement in tree.body:
        value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        for node in value.elts if isinstance(value, ast.List) else [value]:
            call = _python_call(node)
            if call is None:
                return []
            found.append(call)
    return found


def _python_call(node: Any) -> tuple[str, Any] | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and len(node.args) == 1
    ):
        node = node.args[0]
    if not isinstance(node, ast.Call):
        return None
    try:
        name = ast.unparse(node.func)
        arguments: dict[str, Any] = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords if word.arg}
        given = [ast.literal_eval(value) for value in node.args]
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    if len(arguments) != len(node.keywords) or not re.fullmatch(r"[\w.]+", name):
        return None
    return name, {"": given, **arguments} if given else arguments


def _mark(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(pattern, flags)


_N = r"(?P<name>[^\s<>\[\](){}\"'|:,;=]{1,128}(?::\d+)?)"
_PIPE = r"[|｜]"
_GAP = r"[_▁]"
_PREFIX = rf"(?:[\w-]{{1,20}}:|{_PIPE}DSML{_PIPE})?"

DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "Harmony channels",
        _mark(
            rf"(?:<\|channel\|>\s*\w+\s+to|<\|start\|>assistant\s+to)=(?:functions\.)?{_N}[^\n{{]{{0,80}}?<\|message\|>"
        ),
        _name_then_json,
    ),
    Dialect(
        "Mistral, name and arguments",
        _mark(rf"\[TOOL_CALLS\]\s*{_N}(?:\[CALL_ID\]\w{{1,64}})?(?:\[ARGS\])?\s*(?=\{{)"),
        _name_then_json,
    ),
    Dialect("Mistral, JSON list", _mark(r"\[TOOL_CALLS\]\s*(?=[\[{])"), _objects),
    Dialect(
        "DeepSeek markers",
        _mark(
            rf"<{_PIPE}tool{_GAP}call{_GAP}begin{_PIPE}>\s*(?:function\s*<{_PIPE}tool{_GAP}sep{_PIPE}>\s*)?{_N}"
            rf"\s*(?:<{_PIPE}tool{_GAP}sep{_PIPE}>)?\s*(?:```\w*\s*)?(?=\{{)"
        ),
        _name_then_json,
    ),
    Dialect(
        "Kimi K2",
        _mark(rf"<\|tool_call_begin\|>\s*{_N}\s*<\|tool_call_argument_begin\|>"),
        _name_then_json,
    ),
    Dialect(
        "Qwen3-Coder",
        _mark(r"<function=(?P<name>[^>\n]{1,128})>(?=\s*(?:<parameter=|</function>))"),
        _tagged(r"<parameter=(?P<key>[^>\n]{1,128})>", "</parameter>", "</function>"),
    ),
    Dialect("Llama 3, function tag", _mark(r"<function=(?P<name>[^>\n]{1,128})>\s*(?=\{)"), _name_then_json),
    Dialect(
        "Anthropic invoke",
        _mark(rf"<{_PREFIX}invoke name=\"(?P<name>[^\"\n]{{1,128}})\"\s*>"),
        _tagged(
            rf"<{_PREFIX}parameter name=\"(?P<key>[^\"\n]{{1,128}})\"[^>\n]{{0,80}}>",
            rf"</{_PREFIX}parameter>",
            rf"</{_PREFIX}invoke>",
        ),
    ),
    Dialect(
        "Anthropic invoke, with tool_name",
        _mark(r"<invoke>\s*<tool_name>(?P<name>[^<\n]{1,128})</tool_name>\s*<parameters>"),
        _old_invoke,
    ),
    Dialect(
        "GLM-4.5",
        _mark(r"<tool_call>\s*(?P<name>[\w.-]{1,128})\s*(?=<arg_key>|</tool_call>)"),
        _tagged(r"<arg_key>(?P<key>[^<]{1,128})</arg_key>\s*<arg_value>", "</arg_value>", "</tool_call>"),
    ),
    Dialect(
        "JSON in tool_call tags",
        _mark(r"<\|?(?:tool_calls?|function_?calls?|toolcall|tool)\|?>\s*(?:```\w*\s*)?(?=[\[{])", re.IGNORECASE),
        _objects,
    ),
    Dialect("Llama 3, python_tag", _mark(r"<\|python_tag\|>\s*(?=\{)"), _objects),
    Dialect("functools list", _mark(r"\bfunctools\s*(?=\[)"), _objects),
    Dialect("InternLM", _mark(r"<\|action_start\|>\s*<\|(?:plugin|interpreter)\|>\s*(?=\{)"), _objects),
    Dialect("Command R", _mark(r"<\|START_ACTION\|>\s*(?=\[)"), _objects),
    Dialect("Functionary", _mark(rf"^>>>\s*{_N}\s*\n\s*(?=\{{)", re.MULTILINE), _name_then_json),
    Dialect("Qwen-Agent", _mark(rf"✿FUNCTION✿\s*:\s*{_N}\s*✿ARGS✿\s*:\s*(?=\{{)"), _name_then_json),
    Dialect("functions.NAME", _mark(rf"^\s*(?:to=)?functions\.{_N}\s*(?=\{{)", re.MULTILINE), _name_then_json),
    Dialect("Gemini tool_code", _mark(r"^[ \t]*```[ \t]*tool_(?:code|call)[ \t]*\n", re.MULTILINE), _python),
    Dialect(
        "Python in a code tag",
        _mark(r"<(?:code|tool_code|execute|\|python_start\||function_calls)>\s*(?=[\w\[])"),
        _python,
    ),
    Dialect("BFCL list", _mark(r"^[ \t]*(?=\[\s*[A-Za-z_][\w.]*\()", re.MULTILINE), _list_of_calls),
)
"""In the order in which they are tried; text that one of them has read is not shown to the next."""


def marked_calls(raw: str) -> list[Written]:
    """Every call that a dialect of the table finds, in the order of the reply."""
    found: list[Written] = []
    spans: list[tuple[int, int]] = []
    for dialect in DIALECTS:
        for number, match in enumerate(dialect.opens.finditer(raw)):
            if number >= MOST:
                break
            if any(start <= match.start() < end for start, end in spans):
                continue
            calls = list(dialect.read(raw, match))
            if calls:
                spans.append((match.start(), max(call.end for call in calls)))
                found += calls
    return sorted(found, key=lambda call: call.start)


def json_calls(raw: str, read: list[Written]) -> list[Written]:
    """JSON objects that name a tool, outside what was read already; in the order of the reply."""
    found: list[Written] = []
    spans = sorted((call.start, call.end) for call in read)
    position, misses = 0, 0
    while misses < MOST and (position := raw.find("{", position)) >= 0:
        inside = next((end for start, end in spans if start <= position < end), None)
        if inside is not None:
            position = inside
            continue
        value = json_at(raw, position)
        if value is None:
            # What is left unclosed swallows the rest of the reply, as it did for the reader.
            position, misses = max(extent(raw, position)[0], position + 1), misses + 1
            continue
        call = named(value[0])
        if call is not None:
            found.append(Written(*call, position, value[1], value[2]))
        position = max(value[1], position + 1)
    return found
