"""Which executed actions are the model's own, and which the harness decided."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.harness.context import Context, Proposal
from harnesslab.rollout.own import forced

SQL: Any = {"type": "function", "function": {"name": "sql", "parameters": {"properties": {"q": {"type": "string"}}, "required": ["q"]}}}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "read", "replaced", "executed", "choices", "expected"),
    [
        ("Action: right", "right", None, "right", 0, False),
        ("Action: right", "right", None, "right", 2, False),
        ("Action: right", "right", None, "right", 1, True),
        ("Action: left", "left", "right", "right", 0, True),
        ("Action: right", "right", "right", "right", 0, False),
        ("I will not go right", None, "right", "right", 0, True),
        ("Action: take apple", "take apple 1", None, "take apple 1", 0, True),
        ("Action: Take  'apple'", "take apple", None, "take apple", 0, False),
        ("**go right**", "go right", None, "go right", 0, False),
        ("take the apple", "take apple 1", None, "take apple 1", 0, True),
    ],
)
def test_what_is_forced(
    raw: str, read: str | None, replaced: str | None, executed: str, choices: int, expected: bool
) -> None:
    context = Context(instruction="", observation="")
    assert forced(context, choices, Proposal(raw, read), replaced, executed) is expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [("SELECT a b FROM t", False), ('SELECT "a b" FROM t', False), ("SELECT a FROM t", True)],
)
def test_quotes_in_a_tool_call_do_not_count(query: str, expected: bool) -> None:
    context = Context(instruction="", observation="", tools=(SQL,), protocol="text")
    action = {"name": "sql", "arguments": {"q": query}}
    proposal = Proposal('Action: sql\n{"q": "SELECT a b FROM t"}', action)
    assert forced(context, 0, proposal, None, action) is expected


@pytest.mark.parametrize(
    ("raw", "arguments", "expected"),
    [
        ("I see no way to go on.", {}, True),
        ("", {}, True),
        ("I see no way to go on.", {"note": ""}, True),
        ("I see no way to go on.", {"note": None}, True),
        ("I am finished.", {}, True),
        ("I call finish now.", {}, False),
        ("```finish()```", {"note": []}, False),
    ],
)
def test_a_call_without_words_is_the_model_s_own_only_if_it_named_the_tool(
    raw: str, arguments: dict[str, Any], expected: bool
) -> None:
    finish = {"type": "function", "function": {"name": "finish", "parameters": {"properties": {"note": {}}}}}
    context = Context(instruction="", observation="", tools=(finish,), protocol="json")
    action = {"name": "finish", "arguments": arguments}
    assert forced(context, 0, Proposal(raw, action), None, action) is expected
