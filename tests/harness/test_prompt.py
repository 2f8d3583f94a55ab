"""The messages of a request."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.harness import Draft, Turn
from harnesslab.harness.load import PromptSpec
from harnesslab.harness.prompt import build_messages, clip, describe_tools


def test_instruction_stays_when_the_past_is_cut(context: Any, history: Any) -> None:
    past = history(*((f"room {i}", f"go {i}") for i in range(9)))
    messages = build_messages(context("room 9", history=past), Draft(history=2), PromptSpec(system="Base."))
    assert [(m["role"], m["content"]) for m in messages] == [
        ("system", "Base."),
        ("user", "Heat the egg.\n\nroom 7"),
        ("assistant", "Action: go 7"),
        ("user", "room 8"),
        ("assistant", "Action: go 8"),
        ("user", "room 9"),
    ]


def test_draft_paragraphs(context: Any) -> None:
    draft = Draft(history=0).add(system="S", before="B", after="A")
    messages = build_messages(context("room"), draft, PromptSpec())
    assert messages == (
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Heat the egg.\n\nB\n\nroom\n\nA"},
    )


def test_instruction_is_not_told_twice(context: Any) -> None:
    messages = build_messages(context("Heat the egg. You see a pan."), Draft(), PromptSpec())
    assert messages[0]["content"] == "Heat the egg. You see a pan."


def test_unreadable_reply_is_shown_cut(context: Any) -> None:
    past = (Turn("a", "x" * 500, None, "b", True), Turn("b", "", None, "c", True))
    messages = build_messages(context("c", history=past), Draft(), PromptSpec(reply_chars=100))
    assert "[... 400 characters cut ...]" in messages[1]["content"]
    assert messages[3]["content"] == "(empty reply)"


def test_tools_are_listed_unless_native(context: Any, tools: Any) -> None:
    text = build_messages(context(tools=tools), Draft(), PromptSpec(system="Base."))[0]["content"]
    assert text.startswith("Base.\n\nYou have these tools:\n- execute_sql: Run SQL.\n    query (string)")
    assert '    to (string, one of ["kitchen", "hall"])' in text
    native = build_messages(context(tools=tools, protocol="tools"), Draft(), PromptSpec(system="Base."))
    assert native[0]["content"] == "Base."
    off = build_messages(context(tools=tools), Draft(), PromptSpec(system="Base.", tools=False))
    assert off[0]["content"] == "Base."
    assert describe_tools([{"function": {"name": "x"}}]) == "You have these tools:\n- x"


def test_native_calls_are_answered_by_tool_messages(context: Any, tools: Any, history: Any) -> None:
    action = {"name": "execute_sql", "arguments": {"query": "SELECT 1"}}
    past = history(("start", action), ("1", action))
    now = context("2", tools=tools, protocol="tools", history=past)
    messages = build_messages(now, Draft().add(after="Hint."), PromptSpec())
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] == "call_0"
    assert messages[4] == {"role": "tool", "tool_call_id": "call_1", "content": "2"}
    assert messages[5]["content"] == "Hint."
    assert [m["role"] for m in build_messages(now, Draft(), PromptSpec())][-1] == "tool"


def test_long_observation_is_cut_in_the_middle(context: Any) -> None:
    messages = build_messages(context("a" * 150 + "z" * 150), Draft(), PromptSpec(observation_chars=100))
    content = messages[0]["content"]
    assert "[... 200 characters cut ...]" in content
    assert content.endswith("z" * 33) and "a" * 67 in content


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 99])
def test_clip_keeps_exactly_the_limit(limit: int) -> None:
    kept = clip("x" * 100, limit)
    assert kept.count("x") == limit
    assert clip("x" * limit, limit) == "x" * limit
