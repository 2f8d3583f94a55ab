"""Code blocks that name no tool, and are meant for the only one that takes what they hold."""

from __future__ import annotations

from collections.abc import Iterator

from harnesslab.harness.fitting import json_value
from harnesslab.harness.readers import Written
from harnesslab.harness.repair import fences
from harnesslab.harness.toolschema import Tools, name_of, sole_parameter, types

_FAMILY = {
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "shell-session", "terminal", "powershell"), "shell"),
    **dict.fromkeys(("sql", "sqlite", "sqlite3", "mysql", "postgresql", "postgres", "pgsql", "tsql", "plsql"), "sql"),
    **dict.fromkeys(("python", "python3", "py", "ipython", "tool_code", "tool_call"), "python"),
    **dict.fromkeys(
        ("output", "text", "txt", "plaintext", "log", "diff", "yaml", "yml", "xml", "html", "csv", "markdown", "md"),
        "data",
    ),
}
"""What a fence's language tag says of its content."""
_TAKES = (("command", "shell"), ("cmd", "shell"), ("bash", "shell"), ("shell", "shell"), ("sql", "sql"))


def own_blocks(raw: str, tools: Tools) -> Iterator[Written]:
    """Code blocks whose language tag is what the only tool that could be meant takes: SQL for ``run_sql``."""
    for fence in fences(raw):
        if _FAMILY.get(fence.language, "data") != "data":
            yield from _for_only(tools, "string", fence.language, fence.content, fence.start, fence.end, fence.closed)


def lone_values(raw: str, tools: Tools) -> Iterator[Written]:
    """A code block without a language tag or a tool's name, or a reply that is one JSON list, for the only tool it fits."""
    whole = raw.strip()
    if whole.startswith("[") and whole.endswith("]"):
        yield from _for_only(tools, "array", "", whole, 0, len(raw), True)
    for fence in fences(raw):
        text = fence.content.strip()
        if text.startswith("{") and fence.language in ("", "json", "jsonc", "json5"):
            continue
        kind = "array" if text.startswith("[") and (not fence.closed or json_value(text) is not None) else "string"
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
