"""The state card."""

from __future__ import annotations

from typing import Any


def test_facts_inventory_and_tries(pipeline: Any, context: Any, history: Any) -> None:
    text = """\
kind: state_card
params:
  title: 'Card:'
  facts: {At: 'at the (\\w+)'}
  gain: 'You take the (\\w+)'
  lose: 'You put the (\\w+)'
  results: 1
"""
    past = history(
        ("You are at the table.", "take egg"),
        ("You take the egg.", "take pan"),
        ("You take the pan.", "put egg"),
        ("You put the egg.", "look"),
        last="You are at the stove.",
    )
    now = context("You are at the stove.", history=past, budget=9)
    assert pipeline(text, "contract").begin(now).draft.after == (
        "Card:\n- At: stove\n- You have: pan\n- look -> You are at the stove.\n- Steps left: 5",
    )


def test_tried_in_this_situation(pipeline: Any, context: Any, history: Any) -> None:
    pipe = pipeline("kind: state_card\nparams: {place: system, steps_left: false}\n", "contract")
    past = history(("room", "a"), ("hall", "b"), ("room", "c"), ("room", "a"))
    assert pipe.begin(context("room", history=past)).draft.system == ("What you know:\n- Already tried here: a, c",)
    assert pipe.begin(context("new")).fired == ()
