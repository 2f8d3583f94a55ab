"""Replies to actions and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.harness.protocol import call, parse, render

from .conftest import TOOLS

plain = st.text(min_size=1, max_size=60).filter(lambda text: text.strip())
tricky = st.lists(
    st.sampled_from(["Action: x", "```", "````", "go", "", " a ", "{}", '{"a": 1}', "\r", "`"]), min_size=1
).map("\n".join)
values = st.text(max_size=20) | st.integers() | st.booleans() | st.none() | st.lists(st.text(max_size=5), max_size=3)
calls = st.one_of(
    st.builds(lambda q: {"name": "execute_sql", "arguments": {"query": q}}, plain | tricky),
    st.builds(lambda a: {"name": "commit_final_answer", "arguments": {"answers": a}}, st.lists(plain, max_size=3)),
    st.builds(lambda d: {"name": "move", "arguments": d}, st.dictionaries(st.text(max_size=5), values, max_size=3)),
)


@settings(max_examples=150, deadline=None)
@given(plain | tricky.filter(str.strip), st.sampled_from(["text", "json", "tools"]), st.text(max_size=30))
def test_text_action_survives(action: str, protocol: Any, thought: str) -> None:
    raw = render(action, protocol)
    assert parse(raw, (), protocol).action == action
    if protocol != "json" and "action" not in thought.lower() and "`" not in thought:
        assert parse(f"{thought}\n{raw}", (), protocol).action == action


@settings(max_examples=150, deadline=None)
@given(calls)
def test_tool_call_survives(action: dict[str, Any]) -> None:
    for protocol in ("text", "json"):
        assert parse(render(action, protocol, TOOLS), (), protocol, TOOLS).action == action  # type: ignore[arg-type]
    assert parse("", [call(action, "1")], "tools", TOOLS).action == action


@settings(max_examples=150, deadline=None)
@given(st.text() | tricky, st.sampled_from(["text", "json", "tools"]), st.booleans())
def test_parse_never_raises(raw: str, protocol: Any, with_tools: bool) -> None:
    proposal = parse(raw, (), protocol, TOOLS if with_tools else None)
    assert (proposal.action is None) == bool(proposal.problem)
    assert proposal.raw == raw


@pytest.mark.parametrize(
    ("raw", "action"),
    [
        ("Action: go to table 1", "go to table 1"),
        ("I think.\naction:   look  \nObservation: made up", "look"),
        ("Action: a\nObservation: c\nAction: b", "a"),
        ("  ACTION: a", "a"),
        ("Action:\n```\ntwo\nlines\n```\nrest", "two\nlines"),
        ("Action: ```sql\nSELECT 1\n```", "SELECT 1"),
        ("Action:\n```\nAction: inner\n```", "Action: inner"),
    ],
)
def test_text(raw: str, action: str) -> None:
    assert parse(raw, (), "text").action == action


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ("go", "No line"),
        ("My Action: go", "No line"),
        ("", "No line"),
        ("Action:", "Nothing follows"),
        ("Action: ", "Nothing follows"),
        ("Action:\n```\nopen", "not closed"),
        ("Action:\n```\n\n```", "empty"),
    ],
)
def test_text_is_strict(raw: str, part: str) -> None:
    proposal = parse(raw, (), "text")
    assert proposal.action is None
    assert part in proposal.problem and "Action: <your action>" in proposal.problem


@pytest.mark.parametrize(
    ("raw", "name", "arguments"),
    [
        ('Action: execute_sql\n{"query": "SELECT 1"}', "execute_sql", {"query": "SELECT 1"}),
        ('Action: execute_sql {"query": "SELECT 1"} and more', "execute_sql", {"query": "SELECT 1"}),
        ("Action: execute_sql\n```sql\nSELECT 1\n```\nThen I wait.", "execute_sql", {"query": "SELECT 1"}),
        ("Action: execute_sql\nSELECT 1\nFROM t", "execute_sql", {"query": "SELECT 1\nFROM t"}),
        ('Action: commit_final_answer\n["a", "b"]', "commit_final_answer", {"answers": ["a", "b"]}),
        ('Action: commit_final_answer\n{"answers": ["a"]}', "commit_final_answer", {"answers": ["a"]}),
        ('Action: move\n```json\n{"to": "hall", "fast": true}\n```', "move", {"to": "hall", "fast": True}),
    ],
)
def test_tools_in_text(raw: str, name: str, arguments: dict[str, Any]) -> None:
    assert parse(raw, (), "text", TOOLS).action == {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        ("Action: fly", "no tool 'fly'; the tools are: execute_sql"),
        ("Action: execute_sql", "arguments of 'execute_sql' are missing"),
        ("Action: commit_final_answer\nMarch", "not valid JSON (array)"),
        ('Action: commit_final_answer\n"March"', "must be of type array"),
        ("Action: move\nhall", "needs a JSON object"),
        ('Action: move\n{"to": ', "not one valid JSON object"),
    ],
)
def test_tools_in_text_are_strict(raw: str, part: str) -> None:
    proposal = parse(raw, (), "text", TOOLS)
    assert proposal.action is None and part in proposal.problem


@pytest.mark.parametrize(
    ("raw", "tools", "part"),
    [
        ("look", None, "not valid JSON"),
        ('{"act": "look"}', None, "'action' is missing"),
        ('{"action": NaN}', None, "not valid JSON"),
        ("[" * 100_000, None, "not valid JSON"),
        ('["look"]', None, "not a JSON object"),
        ('{"name": "execute_sql"}', TOOLS, "not a JSON object"),
        ('{"arguments": {}}', TOOLS, "name of the tool is missing"),
        ('{"name": ["x"], "arguments": {}}', TOOLS, "no tool"),
    ],
)
def test_json_is_strict(raw: str, tools: Any, part: str) -> None:
    proposal = parse(raw, (), "json", tools)
    assert proposal.action is None and part in proposal.problem


def test_json_may_hold_a_thought() -> None:
    assert parse('{"thought": "hm", "action": "look"}', (), "json").action == "look"


def test_first_native_call_counts() -> None:
    first = {"function": {"name": "execute_sql", "arguments": json.dumps({"query": "a"})}}
    second = {"function": {"name": "execute_sql", "arguments": json.dumps({"query": "b"})}}
    proposal = parse("", [first, second], "tools", TOOLS)
    assert proposal.action == {"name": "execute_sql", "arguments": {"query": "a"}}
    assert proposal.tool_calls == (first, second)


@pytest.mark.parametrize(
    ("calls", "part"),
    [
        ([], "calls no tool"),
        ([{"function": {"name": "execute_sql", "arguments": '{"query": '}}], "not valid JSON"),
        ([{"function": {"name": "execute_sql", "arguments": "[1]"}}], "not a JSON object"),
        ([{"function": {"name": "nope", "arguments": "{}"}}], "no tool 'nope'"),
        ([{}], "name of the tool is missing"),
    ],
)
def test_broken_native_calls(calls: list[dict[str, Any]], part: str) -> None:
    proposal = parse("", calls, "tools", TOOLS)
    assert proposal.action is None and part in proposal.problem
