"""The prompt kind."""

from __future__ import annotations

from typing import Any


def test_system(pipeline: Any, context: Any) -> None:
    prepared = pipeline("kind: prompt\nparams: {text: Be brief.}\n", "contract").begin(context())
    assert prepared.draft.system == ("Be brief.",) and prepared.fired == ("contract/it",)


def test_tool_only_where_it_is_offered(pipeline: Any, context: Any, tools: Any) -> None:
    pipe = pipeline("kind: prompt\nparams: {text: Walk., on: 'tool:move'}\n", "contract")
    assert pipe.begin(context(tools=tools)).draft.system == ("About move: Walk.",)
    assert pipe.begin(context()).fired == ()


def test_observation_that_matches(pipeline: Any, context: Any) -> None:
    text = "kind: prompt\nparams: {text: It is hot., on: observation, match: stove, place: before}\n"
    pipe = pipeline(text, "contract")
    assert pipe.begin(context("A stove.")).draft.before == ("It is hot.",)
    assert pipe.begin(context("A table.")).fired == ()
