"""The finish guard."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.harness import Turn

QUERY = {"name": "execute_sql", "arguments": {"query": "SELECT 1"}}
COMMIT = 'Action: commit_final_answer\n["x"]'


def guard(pipeline: Any, params: str) -> Any:
    return pipeline(f"kind: finish_guard\nparams: {{message: Not yet., {params}}}\n", "regulation")


def test_until_a_tool_was_used(pipeline: Any, context: Any, reply: Any, tools: Any, history: Any) -> None:
    pipe = guard(pipeline, "finish_tool: commit_final_answer, until_tool: execute_sql")
    early = pipe.choose(context(tools=tools), [reply(COMMIT)]).decision
    assert early.withhold and early.note == "Not yet."
    assert pipe.choose(context(tools=tools), [reply("Action: execute_sql\nSELECT 1")]).decision is None
    failed = context(tools=tools, history=history(("a", QUERY), invalid=True))
    assert pipe.choose(failed, [reply(COMMIT)]).decision.withhold
    used = context(tools=tools, history=history(("a", QUERY)))
    assert pipe.choose(used, [reply(COMMIT)]).decision is None


@pytest.mark.parametrize(("params", "past", "held"), [
    ("until_action: ^clean", (("a", "clean egg"),), False),
    ("until_action: ^clean", (("a", "heat egg"),), True),
    ("until_observation: hot", (("It is hot.", "x"),), False),
    ("until_observation: hot", (("It is cold.", "x"),), True),
    ("until_observation: hot, until_action: ^clean", (("It is hot.", "x"),), True),
])  # fmt: skip
def test_conditions(pipeline: Any, context: Any, reply: Any, history: Any, params: str, past: Any, held: bool) -> None:
    pipe = guard(pipeline, f"finish_action: ^done$, {params}")
    decision = pipe.choose(context(history=history(*past)), [reply("Action: done")]).decision
    assert (decision is not None and decision.withhold) == held


def test_is_bounded_and_lets_the_last_step_go(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = guard(pipeline, "finish_action: done, until_action: x, limit: 1")
    assert pipe.choose(context(step=49), [reply("Action: done")]).decision is None
    past = (Turn("a", "", "done", "Not yet.", True, ("regulation/it",)),)
    assert pipe.choose(context(history=past), [reply("Action: done")]).decision is None
