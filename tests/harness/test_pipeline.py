"""The pipeline of one step: order, triggers, firing, faults."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harnesslab.harness import Context, Pipeline, load_harness


def reply(text: str = "", tool_calls: tuple[dict, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(text=text, tool_calls=tool_calls)


def test_empty_harness_only_parses() -> None:
    pipeline = Pipeline(load_harness({"harness.toml": b'name = "empty"'}))
    context = Context("Do it.", "A room.", admissible=("look", "go"))
    prepared = pipeline.begin(context, constrains=True)
    assert prepared.messages == ({"role": "user", "content": "Do it.\n\nA room."},)
    assert prepared.choices is None
    assert prepared.options == ("Action: look", "Action: go")
    assert prepared.fired == ()
    chosen = pipeline.choose(context, [reply("I think.\nAction: look")])
    assert chosen.proposal.action == "look"
    assert chosen.decision is None and chosen.fired == ()


def test_choose_needs_a_reply() -> None:
    pipeline = Pipeline(load_harness({"harness.toml": b'name = "empty"'}))
    with pytest.raises(ValueError, match="at least one reply"):
        pipeline.choose(Context("", ""), [])
