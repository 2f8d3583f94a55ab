"""The rescue kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnesslab.harness.protocol import parse
from harnesslab.harness.repair import find_text_action
from harnesslab.harness.toolrepair import find_call

from ..conftest import TOOLS

ADMISSIBLE = ("take egg 1", "go to table 1", "open fridge 1", "look")


@pytest.mark.parametrize(
    ("raw", "action"),
    [
        ("take egg 1", "take egg 1"),
        ("**Action:** take egg 1", "take egg 1"),
        ("My next action is: `open fridge 1`.", "open fridge 1"),
        ("```\ntake egg 1\n```", "take egg 1"),
        ("```python\ntake egg 1", "take egg 1"),
        ('{"action": "look"', "look"),
        ('{"thought": "hm", "action": "look",}', "look"),
        ("<action>look</action>", "look"),
        ("1. Take egg 1.\n2. cook it", "take egg 1"),
        ("I will go to table 1 now.", None),
        ("I must not take egg 1 yet.", None),
        ("The command `look` is not what I need.", None),
        ("My command is: look", "look"),
        ("take egg 1 and then go to table 1", None),
        ("Action:\nlook", "look"),
        ("**Action:** look\n**Observation:** a room\n**Action:** take egg 1", "look"),
        ("take ham", "take ham"),
        ("Sure! I can help with that.", None),
        ("go to table 1 or take egg 1?", None),
        ("", None),
    ],
)
def test_text(pipeline: Any, context: Any, reply: Any, raw: str, action: str | None) -> None:
    chosen = pipeline("kind: rescue\n").choose(context(admissible=ADMISSIBLE), [reply(raw)])
    assert chosen.proposal.action == action
    assert chosen.fired == (("action/it",) if action else ())


def test_text_without_a_list(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: rescue\nparams: {max_chars: 20}\n")
    assert pipe.choose(context(), [reply("  look around  ")]).proposal.action == "look around"
    assert pipe.choose(context(), [reply("x" * 21)]).proposal.action is None


@pytest.mark.parametrize(
    ("raw", "name", "arguments"),
    [
        ('{"name": "execute_sql", "arguments": {"query": "SELECT 1"', "execute_sql", {"query": "SELECT 1"}),
        ('{"tool": "execute_sql", "args": {"sql": "SELECT 1"}}', "execute_sql", {"query": "SELECT 1"}),
        ('<tool_call>{"function": {"name": "execute_sql", "arguments": "{\\"query\\": \\"a\\"}"}}</tool_call>',
         "execute_sql", {"query": "a"}),
        ("Action: Execute SQL\n```sql\nSELECT 1\n```", "execute_sql", {"query": "SELECT 1"}),
        ("execute_sql\n```sql\nSELECT 1", "execute_sql", {"query": "SELECT 1"}),
        ("```sql\nSELECT 1\n```", "execute_sql", {"query": "SELECT 1"}),
        ('I call it:\nexecute_sql(query="SELECT MAX(a) FROM t")', "execute_sql", {"query": "SELECT MAX(a) FROM t"}),
        ('move("hall", fast=True)', "move", {"to": "hall", "fast": True}),
        ("Action: commit_final_answer\nMarch 19", "commit_final_answer", {"answers": ["March 19"]}),
        ("Action: commit_final_answer\n['a', 'b'", "commit_final_answer", {"answers": ["a", "b"]}),
        ('["a", "b"]', "commit_final_answer", {"answers": ["a", "b"]}),
        ('Action: move\n{"to": "hall", "fast": "true"', "move", {"to": "hall", "fast": True}),
    ],
)  # fmt: skip
def test_tools(pipeline: Any, context: Any, reply: Any, raw: str, name: str, arguments: dict) -> None:
    chosen = pipeline("kind: rescue\n").choose(context(tools=TOOLS), [reply(raw)])
    assert chosen.proposal.action == {"name": name, "arguments": arguments}
    assert chosen.fired == ("action/it",)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "I do not know.",
        'I have not called execute_sql(query="x") yet.',
        "Action: fly\nhall",
        "fly(1)",
        "{",
        "SELECT 1",
    ],
)
def test_no_tool_is_meant(pipeline: Any, context: Any, reply: Any, raw: str) -> None:
    assert pipeline("kind: rescue\n").choose(context(tools=TOOLS), [reply(raw)]).proposal.action is None


def test_broken_native_call(pipeline: Any, context: Any, reply: Any) -> None:
    broken = {"function": {"name": "execute_sql", "arguments": '{"query": "SELECT 1"'}}
    chosen = pipeline("kind: rescue\n").choose(context(tools=TOOLS, protocol="tools"), [reply("", broken)])
    assert chosen.proposal.action == {"name": "execute_sql", "arguments": {"query": "SELECT 1"}}


def test_a_text_without_its_end_is_not_executed(pipeline: Any, context: Any, reply: Any) -> None:
    broken = {"function": {"name": "execute_sql", "arguments": '{"query": "DELETE FROM t'}}
    chosen = pipeline("kind: rescue\n").choose(context(tools=TOOLS, protocol="tools"), [reply("", broken)])
    assert chosen.proposal.action is None


def test_bare_argument(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: rescue\nparams: {bare: '(?i)^select .+', bare_tool: execute_sql}\n")
    chosen = pipe.choose(context(tools=TOOLS), [reply("SELECT 1")])
    assert chosen.proposal.action == {"name": "execute_sql", "arguments": {"query": "SELECT 1"}}


def test_tidies_a_readable_action(pipeline: Any, context: Any, reply: Any) -> None:
    pipe, now = pipeline("kind: rescue\n"), context(admissible=ADMISSIBLE)
    assert pipe.choose(now, [reply("Action: `look`.")]).proposal.action == "look"
    assert pipe.choose(now, [reply("Action: look")]).fired == ()
    typed = pipe.choose(context(tools=TOOLS), [reply('Action: commit_final_answer\n{"answers": "x"}')])
    assert typed.proposal.action["arguments"] == {"answers": ["x"]}
    off = pipeline("kind: rescue\nparams: {tidy: false}\n")
    assert off.choose(now, [reply("Action: `look`.")]).fired == ()


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from('{}[]():"`,\nab Action:execute_sql<>'), max_size=60))
def test_never_raises(raw: str) -> None:
    find_text_action(raw, ADMISSIBLE, 50)
    find_call(parse(raw, (), "text", TOOLS), TOOLS)
