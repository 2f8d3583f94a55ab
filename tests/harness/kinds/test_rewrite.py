"""The rewrite kind."""

from __future__ import annotations

from typing import Any


def test_text(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: rewrite\nparams: {pattern: '^(?:grab|get) (.+)', replacement: 'take \\1'}\n")
    chosen = pipe.choose(context(), [reply("Action: grab egg")])
    assert chosen.proposal.action == "take egg" and chosen.fired == ("action/it",)
    assert pipe.choose(context(), [reply("Action: take egg")]).fired == ()
    assert pipe.choose(context(), [reply("nothing")]).fired == ()


def test_named_argument_only(pipeline: Any, context: Any, reply: Any, tools: Any) -> None:
    answer = [reply('Action: move\n{"to": "x", "why": "x", "fast": true}')]
    named = pipeline("kind: rewrite\nparams: {pattern: x, replacement: hall, argument: to}\n")
    assert named.choose(context(tools=tools), answer).proposal.action["arguments"] == {
        "to": "hall",
        "why": "x",
        "fast": True,
    }
    every = pipeline("kind: rewrite\nparams: {pattern: x, replacement: hall}\n")
    assert every.choose(context(tools=tools), answer).proposal.action["arguments"]["why"] == "hall"
    none = pipeline("kind: rewrite\nparams: {pattern: x, replacement: hall, argument: nope}\n")
    assert none.choose(context(tools=tools), answer).fired == ()


def test_leaves_alone_what_is_admissible(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: rewrite\nparams: {pattern: get, replacement: take, only_inadmissible: true}\n")
    assert pipe.choose(context(admissible=("get egg",)), [reply("Action: get egg")]).fired == ()
    assert pipe.choose(context(admissible=("look",)), [reply("Action: get egg")]).proposal.action == "take egg"


def test_never_leaves_nothing(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: rewrite\nparams: {pattern: .+, replacement: ''}\n")
    assert pipe.choose(context(), [reply("Action: x")]).proposal.action == "x"
