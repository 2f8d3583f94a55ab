"""Readers of calls that are written as text: JSON, tags, Python, and Gemma's own notation. Used by :mod:`.dialects`.

A reader starts behind an opening mark and only finds. Text is parsed and never run, and each reader is linear in the
reply. A call whose last value has no end is yielded without a name: a call was begun, and what it means is not known.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from harnesslab.harness.pycalls import python_calls
from harnesslab.harness.repair import extent, mended
from harnesslab.plainjson import leading_json


class Written(NamedTuple):
    """A call as it is written: name, arguments (any JSON value), where it is, and whether its end is there.

    ``sure`` is false for a JSON object that may be data: it has a name, and nothing that is called arguments.
    """

    name: Any
    arguments: Any
    start: int
    end: int
    whole: bool = True
    sure: bool = True
    mended: bool = False


Reader = Callable[[str, "re.Match[str]"], Iterator[Written]]

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "recipient_name", "action")
_HOLDERS = ("tool_call", "function_call", "function", "tool", "action", "command", "ability")
_LISTS = ("tool_calls", "tool_uses")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")
_ASIDE = frozenset({*_NAME_KEYS, "thought", "thoughts", "reason", "reasoning", "id", "type", "tool_call_id", "call_id"})
_CODE_END = re.compile(
    r"\n[ \t]*```|</?(?:code|tool_code|execute|function_calls?|tool_calls?|action)>|"
    r"<\|(?:python_end|tool_call_end|eom_id|eot_id)\|>"
)
_SPACE = re.compile(r"\s*")
_LANGUAGE = re.compile(r"\s*(?:```[ \t]*\w*|<\|message\|>|\[ARGS\])?\s*")
_FENCE_OPEN = re.compile(r"```[ \t]*\w*\s*(?:\[\s*)?\Z")
_FENCE_CLOSE = re.compile(r"\s*(?:\]\s*)?```")
_QUOTE = re.compile(r'<escape>|<\|"\|>')


class Json(NamedTuple):
    """A JSON value in a reply: where it ends, whether its end is there, and whether it had to be mended."""

    value: Any
    end: int
    whole: bool = True
    mended: bool = False


def named(item: Any, mended: bool = False) -> list[tuple[Any, Any, bool]]:
    """A JSON object as the calls (name, arguments, sure) that it holds; none where it names nothing.

    An object that was ``mended`` and has values beside its arguments may have lost them from there: the call has no name.
    """
    if not isinstance(item, Mapping):
        return []
    for key in _LISTS:
        if isinstance(item.get(key), list) and not (mended and len(item) > 1):
            return [call for one in item[key] for call in named(one, mended)]
    held = next((item[key] for key in _HOLDERS if isinstance(item.get(key), Mapping)), None)
    if mended and held is not None and len(item) > 1:
        return [(None, None, True)]
    if held is not None and not (isinstance(item.get("name"), str) and any(key in item for key in _ARGUMENT_KEYS)):
        item = held
    names = (item[key] for key in _NAME_KEYS if key in item)
    name = next((one for one in names if isinstance(one, str) and one.strip()), None)
    if name is None:
        return []
    given = [item[key] for key in _ARGUMENT_KEYS if key in item]
    rest = {key: value for key, value in item.items() if key not in _ASIDE and key not in _ARGUMENT_KEYS}
    if not given:
        return [(name, rest, False)]
    doubtful = mended and (rest or len(given) > 1 or sum(key in item for key in _NAME_KEYS) > 1)
    return [(None if doubtful else name, {} if given[0] is None else given[0], True)]


def fenced(raw: str, start: int, end: int) -> tuple[int, int]:
    """From ``start`` to ``end``, together with the fence directly around it."""
    opening = _FENCE_OPEN.search(raw, max(0, start - 40), start)
    closing = _FENCE_CLOSE.match(raw, end)
    return (opening.start(), closing.end()) if opening and closing else (start, end)


def json_at(raw: str, start: int) -> Json | None:
    """The JSON value at ``start``; a broken one is mended if nothing of it is lost, else None."""
    try:
        return Json(*leading_json(raw, start))
    except ValueError:
        end, closed = extent(raw, start)
    value = mended(raw[start:end])
    return None if value is None else Json(value, end, closed, True)


def objects(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """One JSON object, or a list of them, each with the name of its tool."""
    start = _LANGUAGE.match(raw, match.end()).end()  # type: ignore[union-attr]
    while raw[start : start + 1] in ("{", "["):
        found = json_at(raw, start)
        if found is None:
            yield _unread(raw, match)
            return
        for item in found.value if isinstance(found.value, list) else [found.value]:
            for name, arguments, _sure in named(item, found.mended):
                yield Written(
                    name, arguments, match.start(), fenced(raw, start, found.end)[1], found.whole, mended=found.mended
                )
        start = _SPACE.match(raw, found.end).end()  # type: ignore[union-attr]
        start += raw[start : start + 1] == ";"
        start = _SPACE.match(raw, start).end()  # type: ignore[union-attr]


def keyed_objects(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """A JSON list of objects with one key each, which is the tool's name."""
    found = json_at(raw, match.end())
    value = found.value if found is not None else None
    for item in value if isinstance(value, list) else [value]:
        if found is not None and isinstance(item, Mapping) and len(item) == 1:
            yield Written(*next(iter(item.items())), match.start(), found.end, found.whole, mended=found.mended)
        else:
            yield _unread(raw, match)


def name_then_json(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """The name in the mark's group ``name``, its arguments as JSON behind the mark."""
    start = _LANGUAGE.match(raw, match.end()).end()  # type: ignore[union-attr]
    if raw[start : start + 1] != "{":
        return
    found = json_at(raw, start)
    if found is None:
        yield _unread(raw, match)
        return
    yield Written(
        match["name"].strip(),
        found.value,
        match.start(),
        fenced(raw, start, found.end)[1],
        found.whole,
        mended=found.mended,
    )


def name_then_value(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """The name in the mark; its arguments are all that the tag ``tag``, which the mark ends with, holds."""
    stop = _next(match, raw)
    close = raw.rfind(f"</{match['tag']}>", match.end(), stop)
    if close < 0:
        yield _unread(raw, match)
        return
    value = raw[match.end() : close].removeprefix("\n").removesuffix("\n")
    yield Written(match["name"].strip(), value, match.start(), close + len(match["tag"]) + 3)


def tagged(parameter: str, parameter_end: str, end: str) -> Reader:
    """The name in the mark; each argument between tags.

    A value runs to the last closing tag before the next argument, the last value to the first one that the end of the call
    follows. Where that leaves a closing tag over, nobody can say which of them was part of the value.
    """
    opening, value_end, call_end = re.compile(parameter), re.compile(parameter_end), re.compile(rf"\s*{end}")
    anywhere = re.compile(end)

    def read(raw: str, match: re.Match[str]) -> Iterator[Written]:
        stop = _next(match, raw)
        marks = list(opening.finditer(raw, match.end(), stop))
        if not marks:
            close = call_end.match(raw, match.end(), stop)
            if close is not None:
                yield Written(match["name"].strip(), {}, match.start(), close.end())
            return
        if raw[match.end() : marks[0].start()].strip():
            return
        arguments: dict[str, Any] = {}
        for mark, following in itertools.pairwise(marks):
            last = _last(value_end, raw, mark.end(), following.start())
            arguments[mark["key"].strip()] = _bare(raw[mark.end() : last.start() if last else following.start()])
        mark, ends = marks[-1], list(value_end.finditer(raw, marks[-1].end(), stop))
        value = next((one for one in ends if call_end.match(raw, one.end(), stop)), ends[0] if ends else None)
        value = value or anywhere.search(raw, mark.end(), stop)
        if value is None:
            yield _unread(raw, match)
            return
        arguments[mark["key"].strip()] = _bare(raw[mark.end() : value.start()])
        close = call_end.match(raw, value.end() if ends else value.start(), stop)
        done = close.end() if close else value.end()
        if value_end.search(raw, done, stop) or len(arguments) < len(marks):
            yield _unread(raw, match)
            return
        yield Written(match["name"].strip(), arguments, match.start(), done, close is not None)

    return read


def old_invoke(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """``<tool_name>`` and ``<parameters>`` with one tag an argument."""
    stop = _next(match, raw)
    close = raw.rfind("</parameters>", match.end(), stop)
    if close < 0:
        yield _unread(raw, match)
        return
    body = raw[match.end() : close]
    arguments = {one[1]: one[2] for one in re.finditer(r"<([\w.-]{1,64})>(.*?)</\1>", body, re.DOTALL)}
    yield Written(match["name"].strip(), arguments, match.start(), close)


def python(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """Calls written as Python, up to the mark's closing partner; read as an expression, never run."""
    close = _CODE_END.search(raw, match.end())
    end = close.start() if close else len(raw)
    calls = python_calls(raw[match.end() : end])
    if close is not None and close[0].lstrip().startswith(("```", "</")):
        end = close.end()
    for name, arguments in calls:
        yield Written(name, arguments, match.start(), end, close is not None)
    if not calls and "(" in raw[match.end() : end]:
        yield Written(None, None, match.start(), end, close is not None)


def one_call(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """One call in Python's notation."""
    end, closed = extent(raw, match.end())
    for name, arguments in python_calls(raw[match.end() : end]) if closed else ():
        yield Written(name, arguments, match.start(), end)
    if not closed:
        yield _unread(raw, match)


def method_calls(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """Python in which ``name.call(...)`` is a call of the tool ``name``."""
    for call in python(raw, match):
        yield call._replace(name=call.name and call.name.removesuffix(".call"))


def list_of_calls(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """A list of calls in Python's notation."""
    end, closed = extent(raw, match.end())
    for name, arguments in python_calls(raw[match.end() : end]) if closed else ():
        yield Written(name, arguments, match.start(), end)


def gemma(raw: str, match: re.Match[str]) -> Iterator[Written]:
    """``call:name{key:value}``: bare keys, and texts between marks of their own."""
    pieces: list[str] = []
    depth, position, quoted, stop = 0, match.end(), False, _next(match, raw)
    while position < stop:
        mark = _QUOTE.search(raw, position, stop)
        segment = raw[position : mark.start() if mark else stop]
        if quoted:
            pieces.append(json.dumps(segment))
        else:
            for offset, char in enumerate(segment):
                depth += (char in "{[") - (char in "}]")
                if depth <= 0:
                    pieces.append(_bare_json(segment[: offset + 1]))
                    yield _of_gemma(raw, match, "".join(pieces), position + offset + 1)
                    return
            pieces.append(_bare_json(segment))
        if mark is None:
            break
        position, quoted = mark.end(), not quoted
    yield _unread(raw, match)


def _of_gemma(raw: str, match: re.Match[str], text: str, end: int) -> Written:
    found = json_at(text, 0)
    return _unread(raw, match) if found is None else Written(match["name"].strip(), found.value, match.start(), end)


def _bare_json(segment: str) -> str:
    """What is between texts as JSON: quotes around keys and around words that are no JSON value."""
    segment = re.sub(r"([{,]\s*)([\w.-]+)(\s*:)", r'\1"\2"\3', segment)
    return re.sub(r"([:\[,]\s*)(?!(?:true|false|null)\s*[,}\]])([A-Za-z_][\w.-]*)(?=\s*[,}\]])", r'\1"\2"', segment)


def _unread(raw: str, match: re.Match[str]) -> Written:
    """A call that was begun here and cannot be read."""
    return Written(None, None, match.start(), _next(match, raw), False)


def _next(match: re.Match[str], raw: str) -> int:
    """Where the next call of the same dialect opens, or the reply ends."""
    following = match.re.search(raw, match.end())
    return following.start() if following else len(raw)


def _last(text: re.Pattern[str], raw: str, start: int, stop: int) -> re.Match[str] | None:
    found = list(text.finditer(raw, start, stop))
    return found[-1] if found else None


def _bare(value: str) -> str:
    """An argument without the line breaks around it, or what its CDATA section holds."""
    value = value.removeprefix("\n").removesuffix("\n")
    marked = value.startswith("<![CDATA[") and value.endswith("]]>")
    return value.removeprefix("<![CDATA[").removesuffix("]]>") if marked else value
