"""The kinds annotate, shorten, tool, lint and ask_again."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.errors import HarnessFileError
from harnesslab.harness import Decision, Turn
from harnesslab.harness.kinds.tool import merged
from tests.harness.conftest import TOOLS


def seen(pipeline: Any, text: str, now: Any) -> str:
    return str(pipeline(text, layer="contract").see(now).context.observation)


@pytest.mark.parametrize(
    ("params", "observation", "after"),
    [
        ("{text: Hint.}", "A room.", "A room.\nHint."),
        ("{text: Hint., place: before}", "A room.", "Hint.\nA room."),
        ("{text: 'In \\1.', match: '(\\w+)\\.$'}", "A room.", "A room.\nIn room."),
        ("{text: '<\\1>', match: '(\\w+)\\.', place: instead}", "A room. B.", "A <room> <B>"),
        ("{text: Hint., match: cat}", "A room.", "A room."),
    ],
)
def test_annotate(pipeline: Any, context: Any, params: str, observation: str, after: str) -> None:
    assert seen(pipeline, f"kind: annotate\nparams: {params}\n", context(observation=observation)) == after


def test_annotate_is_bounded(pipeline: Any, context: Any) -> None:
    past = (Turn("a", "", "b", "c", False, ("contract/it",)),)
    assert (
        seen(pipeline, "kind: annotate\nparams: {text: Hint., limit: 1}\n", context(history=past, observation="x"))
        == "x"
    )


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ("{text: '\\2', match: '(a)'}", "params.text"),
        ("{text: a, place: instead}", "params.place"),
        ("{}", "params.text"),
    ],
)
def test_annotate_refuses(pipeline: Any, params: str, key: str) -> None:
    with pytest.raises(HarnessFileError, match=key.replace(".", r"\.")):
        pipeline(f"kind: annotate\nparams: {params}\n", layer="contract")


def test_shorten(pipeline: Any, context: Any) -> None:
    page = "\n".join(["Welcome " * 10, "Price: 3", "x" * 200, "Price: 4"])
    short = "kind: shorten\nparams: {chars: 100, keep: Price}\n"
    assert seen(pipeline, short, context(observation=page)) == "Price: 3\nPrice: 4\n[2 other lines left out]"
    assert seen(pipeline, short, context(observation="Price: 3\nx")) == "Price: 3\nx"
    assert "characters cut" in seen(pipeline, "kind: shorten\nparams: {chars: 100}\n", context(observation=page))
    assert "characters cut" in seen(
        pipeline, "kind: shorten\nparams: {chars: 100, keep: cat}\n", context(observation=page)
    )


def test_tool(pipeline: Any, context: Any) -> None:
    text = """
kind: tool
params:
  name: move
  description: Go somewhere.
  note: One room a call.
  parameters: {to: the room, nowhere: ignored}
  patch: {properties: {fast: null}, required: [to]}
"""
    pipe = pipeline(text, layer="contract")
    perceived = pipe.see(context(tools=TOOLS))
    made = perceived.context.tools[2]["function"]
    assert made["description"] == "Go somewhere. One room a call." and perceived.fired == ("contract/it",)
    assert made["parameters"] == {
        "type": "object",
        "properties": {"to": {"type": "string", "enum": ["kitchen", "hall"], "description": "the room"}},
        "required": ["to"],
    }
    assert perceived.context.tools[:2] == TOOLS[:2] and "description" not in TOOLS[2]["function"]
    assert pipe.see(context(tools=TOOLS[:1])).fired == () == pipe.see(context()).fired
    hidden = pipeline("kind: tool\nparams: {name: move, hide: true}\n", layer="contract").see(context(tools=TOOLS))
    assert hidden.context.tools == TOOLS[:2]


def test_a_merge_patch() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": None, "e": {"f": None, "g": 1}}, "d": [1]}) == {
        "a": {"c": 2, "e": {"g": 1}},
        "d": [1],
    }


def test_lint(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline(
        "kind: lint\nparams: {pattern: drop, unless: if exists, message: Careful., limit: 1}\n", layer="regulation"
    )
    assert pipe.choose(context(), [reply("Action: drop x")]).decision == Decision(note="Careful.")
    assert pipe.choose(context(), [reply("Action: drop x if exists")]).decision is None
    past = (Turn("a", "", "b", "c", False, ("regulation/it",)),)
    assert pipe.choose(context(history=past), [reply("Action: drop x")]).decision is None


@pytest.mark.parametrize(
    ("params", "said", "again"),
    [
        ("{}", "Hm.", "Reply with one line"),
        ("{}", "Action: look", ""),
        ("{message: What?}", "Hm.", "What?"),
        ("{message: Listed ones only., impossible: true}", "Action: fly", "Listed ones only."),
        ("{message: Listed ones only., impossible: true}", "Action: look", ""),
        ("{message: Not now., pattern: loo, unread: false}", "Action: look", "Not now."),
        ("{message: Not now., pattern: loo, unread: false}", "Hm.", ""),
    ],
)
def test_ask_again(pipeline: Any, context: Any, reply: Any, params: str, said: str, again: str) -> None:
    pipe = pipeline(f"kind: ask_again\nparams: {params}\n")
    assert again in pipe.choose(context(admissible=("look", "go")), [reply(said)]).again
    assert bool(pipe.choose(context(admissible=("look", "go")), [reply(said)]).again) is bool(again)
    assert pipe.choose(context(admissible=("look", "go"), asked=1), [reply(said)]).again == ""


def test_ask_again_about_arguments(pipeline: Any, context: Any, reply: Any) -> None:
    pipe = pipeline("kind: ask_again\nparams: {message: Fill it in., impossible: true}\n")
    calls = [
        {"name": "move", "arguments": arguments} for arguments in ('{"to": "hall", "fast": true}', '{"to": "hall"}')
    ]
    found = [pipe.choose(context(tools=TOOLS, protocol="tools"), [reply("", one)]).again for one in calls]
    assert found[0] == "" and found[1]


@pytest.mark.parametrize("params", ["{unread: false}", "{impossible: true}", "{pattern: x}", "{times: 9}"])
def test_ask_again_refuses(pipeline: Any, params: str) -> None:
    with pytest.raises(HarnessFileError, match=r"action/it\.yaml"):
        pipeline(f"kind: ask_again\nparams: {params}\n")
