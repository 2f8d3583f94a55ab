"""The published ways in which models write tool calls as text: one table, one reader a family.

A dialect is an opening mark and a reader from :mod:`.readers` that starts behind it. Whether a call means a tool, and
which arguments it takes, is :mod:`~harnesslab.harness.toolrepair`'s question. ``docs/reply-formats.md`` shows each of
them with an example.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harnesslab.harness.readers import (
    Reader,
    Written,
    fenced,
    gemma,
    json_at,
    keyed_objects,
    list_of_calls,
    method_calls,
    name_then_json,
    name_then_value,
    named,
    objects,
    old_invoke,
    one_call,
    python,
    tagged,
)
from harnesslab.harness.repair import extent

MOST = 32
"""Openings of one dialect that are looked at; a reply with more of them is a loop."""


class Dialect(NamedTuple):
    """``opens`` is searched in the reply; ``read`` gets the reply and the match and yields the calls behind it."""

    name: str
    opens: re.Pattern[str]
    read: Reader


_N = r"(?P<name>[^\s<>\[\](){}\"'|:,;=]{1,128}(?::\d+)?)"
_PIPE = r"[|｜]"
_GAP = r"[_▁]"
_PREFIX = rf"(?:[\w-]{{1,20}}:|{_PIPE}DSML{_PIPE})?"
_INVOKE = r"(?:invoke|function_call|tool_call|function|tool)"
_PARAMETER = r"(?:parameter|param|argument|arg)"
_INPUT = r"(?P<tag>tool_input|action_input|arguments|parameters|input|args)"

DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "Harmony channels",
        re.compile(
            rf"(?:<\|channel\|>\s*\w+\s+to|<\|start\|>assistant\s+to)=(?:functions\.)?{_N}[^\n{{]{{0,80}}?<\|message\|>"
        ),
        name_then_json,
    ),
    Dialect(
        "Harmony without its special tokens",
        re.compile(
            rf"(?:commentary|analysis) to=(?:functions\.)?{_N}\s*(?:<\|constrain\|>\s*)?(?:(?:json|code)\s*)?(?=\{{)"
        ),
        name_then_json,
    ),
    Dialect(
        "Mistral, name and arguments",
        re.compile(rf"\[TOOL_CALLS\]\s*{_N}\s*(?:\[CALL_ID\]\s*\w{{1,64}}\s*)?(?:\[ARGS\]\s*)?(?=\{{)"),
        name_then_json,
    ),
    Dialect("Mistral, JSON list", re.compile(r"\[TOOL_CALLS\]\s*(?=[\[{])"), objects),
    Dialect(
        "DeepSeek markers",
        re.compile(
            rf"<{_PIPE}tool{_GAP}call{_GAP}begin{_PIPE}>\s*(?:function\s*<{_PIPE}tool{_GAP}sep{_PIPE}>\s*)?{_N}"
            rf"\s*(?:<{_PIPE}tool{_GAP}sep{_PIPE}>\s*)?(?:```\w*\s*)?(?=\{{)"
        ),
        name_then_json,
    ),
    Dialect(
        "Kimi K2",
        re.compile(rf"<\|tool_call_begin\|>\s*{_N}\s*<\|tool_call_argument_begin\|>"),
        name_then_json,
    ),
    Dialect(
        "Solar",
        re.compile(rf"<\|tool_call:begin\|>\s*(?:[\w-]{{1,64}}\s*)?<\|tool_call:name\|>\s*{_N}\s*<\|tool_call:args\|>"),
        name_then_json,
    ),
    Dialect(
        "Qwen3-Coder",
        re.compile(r"<function=(?P<name>[^>\n]{1,128})>(?=\s*(?:<parameter=|</function>))"),
        tagged(r"<parameter=(?P<key>[^>\n]{1,128})>", "</parameter>", "</function>"),
    ),
    Dialect("Llama 3, function tag", re.compile(r"<function=(?P<name>[^>\n]{1,128})>\s*(?=\{)"), name_then_json),
    Dialect(
        "A tag with the name, and JSON",
        re.compile(rf"<{_PREFIX}{_INVOKE} name=[\"'](?P<name>[^\"'\n]{{1,128}})[\"']\s*>\s*(?=\{{)"),
        name_then_json,
    ),
    Dialect(
        "Anthropic invoke",
        re.compile(rf"<{_PREFIX}{_INVOKE} name=[\"'](?P<name>[^\"'\n]{{1,128}})[\"']\s*>"),
        tagged(
            rf"<{_PREFIX}{_PARAMETER} name=[\"'](?P<key>[^\"'\n]{{1,128}})[\"'][^>\n]{{0,80}}>",
            rf"</{_PREFIX}{_PARAMETER}>",
            rf"</{_PREFIX}{_INVOKE}>",
        ),
    ),
    Dialect(
        "Anthropic invoke, with tool_name",
        re.compile(r"<invoke>\s*<tool_name>(?P<name>[^<\n]{1,128})</tool_name>\s*<parameters>"),
        old_invoke,
    ),
    Dialect(
        "XML, the name and the input",
        re.compile(rf"<(tool_name|tool|action|name)>\s*(?P<name>[^<\s][^<\n]{{0,127}})</\1>\s*<{_INPUT}>"),
        name_then_value,
    ),
    Dialect(
        "GLM-4.5",
        re.compile(
            r"<(?:longcat_)?tool_call>\s*(?P<name>[\w.-]{1,128})\s*(?:<tool_sep>\s*)?(?=<(?:longcat_)?arg_key>|</tool_call>)"
        ),
        tagged(
            r"<(?:longcat_)?arg_key>(?P<key>[^<]{1,128})</(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>",
            "</(?:longcat_)?arg_value>",
            "</(?:longcat_)?tool_call>",
        ),
    ),
    Dialect("Apertus", re.compile(r"<\|tools_prefix\|>\s*(?=\[)"), keyed_objects),
    Dialect(
        "FunctionGemma and Gemma 4",
        re.compile(rf"(?:<start_function_call>|<\|tool_call>)\s*call:{_N}\s*(?=\{{)"),
        gemma,
    ),
    Dialect(
        "JSON in tool_call tags",
        re.compile(
            r"<\|?(?:longcat_)?(?:tool_calls?|tool_call_start|function_?calls?|toolcall|tool)\|?>\s*(?:```\w*\s*)?(?=[\[{]\s*[{\"'])",
            re.IGNORECASE,
        ),
        objects,
    ),
    Dialect("Llama 3, python_tag", re.compile(r"<\|python_tag\|>\s*(?=\{)"), objects),
    Dialect("Llama 3, python_tag and a call", re.compile(r"<\|python_tag\|>\s*(?=[\w\[])"), method_calls),
    Dialect("functools list", re.compile(r"\bfunctools\s*(?=\[)"), objects),
    Dialect("InternLM", re.compile(r"<\|action_start\|>\s*<\|(?:plugin|interpreter)\|>\s*(?=\{)"), objects),
    Dialect("Command R", re.compile(r"<\|START_ACTION\|>\s*(?=\[)"), objects),
    Dialect("Functionary", re.compile(rf">>>[ \t]*{_N}[ \t]*\n\s*(?=\{{)"), name_then_json),
    Dialect("Functionary v2", re.compile(rf"<\|recipient\|>\s*{_N}\s*<\|content\|>\s*(?=\{{)"), name_then_json),
    Dialect("Qwen-Agent", re.compile(rf"✿FUNCTION✿\s*:\s*{_N}\s*✿ARGS✿\s*:\s*(?=\{{)"), name_then_json),
    Dialect("functions.NAME", re.compile(rf"^[ \t]*(?:to=)?functions\.{_N}\s*(?=\{{)", re.MULTILINE), name_then_json),
    Dialect(
        "Tool and Arguments lines",
        re.compile(
            rf"^[ \t>*_]*(?:tool|function)(?:[ _]name)?[*_]*:[*_ \t]*`?{_N}`?[ \t]*\n[ \t>*_]*"
            r"(?:(?:tool|function)[ _])?(?:arguments|args|parameters|params|input)[*_]*:[*_]*\s*(?:```\w*\s*)?(?=\{)",
            re.MULTILINE | re.IGNORECASE,
        ),
        name_then_json,
    ),
    Dialect("Gemini tool_code", re.compile(r"^[ \t]*```[ \t]*tool_(?:code|call)[ \t]*\n", re.MULTILINE), python),
    Dialect(
        "Python in a tag",
        re.compile(
            r"<(?:code|tool_code|execute|\|python_start\||\|tool_call_start\||function_calls?|tool_calls?|action)>\s*(?=[A-Za-z_]|\[\s*[A-Za-z_])"
        ),
        python,
    ),
    Dialect(
        "Gorilla and NexusRaven", re.compile(r"(?:<<function>>|^[ \t]*Call:)[ \t]*(?=[\w.]+\()", re.MULTILINE), one_call
    ),
    Dialect("list of Python calls", re.compile(r"^[ \t]*(?=\[\s*[A-Za-z_][\w.]*\()", re.MULTILINE), list_of_calls),
)
"""In the order in which they are tried; text that one of them has read is not shown to the next."""


_BEGUN = re.compile(r"\{\s*[\"'](?:name|tool|tool_name|function|tool_calls?|function_call|action|command)[\"']\s*:")
"""An object that, broken as it is, was to be a call."""


def marked_calls(raw: str) -> list[Written]:
    """Every call that a dialect of the table finds, in the order of the reply; those it cannot read have no name."""
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
            end = max(extent(raw, position)[0], position + 1)
            if _BEGUN.match(raw, position):
                found.append(Written(None, None, position, end, False))
            position, misses = end, misses + 1
            continue
        start, end = fenced(raw, position, value.end)
        found += [
            Written(name, arguments, start, end, value.whole, sure, value.mended)
            for name, arguments, sure in named(value.value, value.mended)
        ]
        position = max(value.end, position + 1)
    return found
