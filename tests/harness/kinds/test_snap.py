"""The snap kind."""

from __future__ import annotations

from typing import Any

import pytest

ADMISSIBLE = ("take egg 1", "take pan 2", "go to table 1", "open fridge 1")


@pytest.mark.parametrize(
    ("said", "done"),
    [
        ("take egg", "take egg 1"),
        ("Take Egg 1", "take egg 1"),
        ("go table 1", "go to table 1"),
        ("1 fridge open", "open fridge 1"),
        ("opne fridge 1", "open fridge 1"),
        ("dance wildly", None),
        ("take egg 1", None),
    ],
)
def test_nearest(pipeline: Any, context: Any, reply: Any, said: str, done: str | None) -> None:
    chosen = pipeline("kind: snap\n").choose(context(admissible=ADMISSIBLE), [reply(f"Action: {said}")])
    assert chosen.proposal.action == (done or said)
    assert chosen.fired == (("action/it",) if done else ())


def test_same_verb_first(pipeline: Any, context: Any, reply: Any) -> None:
    now, answer = context(admissible=("drop cup", "take cups")), [reply("Action: take cup")]
    assert pipeline("kind: snap\n").choose(now, answer).proposal.action == "take cups"
    only = pipeline("kind: snap\nparams: {other_verbs: false}\n")
    assert only.choose(context(admissible=("drop cup",)), answer).fired == ()


def test_enums_of_a_tool(pipeline: Any, context: Any, reply: Any, tools: Any) -> None:
    answer = [reply('Action: move\n{"to": "the kitchen", "fast": true}')]
    chosen = pipeline("kind: snap\nparams: {threshold: 60}\n").choose(context(tools=tools), answer)
    assert chosen.proposal.action == {"name": "move", "arguments": {"to": "kitchen", "fast": True}}
    off = pipeline("kind: snap\nparams: {enums: false}\n").choose(context(tools=tools), answer)
    assert off.fired == ()


def test_silent_without_a_list(pipeline: Any, context: Any, reply: Any) -> None:
    assert pipeline("kind: snap\n").choose(context(), [reply("Action: x")]).fired == ()
