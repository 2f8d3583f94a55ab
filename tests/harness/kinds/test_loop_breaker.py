"""The loop breaker."""

from __future__ import annotations

from typing import Any

import pytest

from harnesslab.harness import Turn


@pytest.mark.parametrize(
    ("path", "here", "loops"),
    [
        ("xa xa", "x", True),
        ("xa", "x", False),
        ("xa yb xa yb", "x", True),
        ("xa yb xa yb", "z", False),
        ("xa yb xa yc", "x", False),
        ("xa yb zc xa yb zc", "x", True),
        ("xa yb zc wd xa yb zc wd", "x", False),
    ],
)
def test_cycles_up_to_a_length(pipeline: Any, context: Any, history: Any, path: str, here: str, loops: bool) -> None:
    pipe = pipeline("kind: loop_breaker\nparams: {length: 3}\n", "regulation")
    now = context(here, history=history(*((step[0], step[1]) for step in path.split())))
    prepared = pipe.begin(now)
    assert (prepared.fired == ("regulation/it",)) == loops
    assert bool(prepared.draft.after) == loops


def test_force_narrows_choices_and_replaces(pipeline: Any, context: Any, history: Any, reply: Any) -> None:
    text = "kind: loop_breaker\nparams: {force: true}\n"
    now = context("x", admissible=("a", "b", "heat egg"), history=history(("x", "a"), ("x", "a")))
    both = pipeline({"action/c.yaml": "kind: constrain\n", "regulation/l.yaml": text})
    assert both.begin(now, True).draft.choices == ("b", "heat egg")
    pipe = pipeline(text, "regulation")
    assert pipe.choose(now, [reply("Action: a")]).decision.action == "heat egg"
    assert pipe.choose(now, [reply("?")]).decision.action == "heat egg"
    assert pipe.choose(now, [reply("Action: b")]).decision is None
    done = context("x", admissible=("a",), history=now.history)
    assert pipe.choose(done, [reply("Action: a")]).decision is None


def test_is_bounded(pipeline: Any, context: Any) -> None:
    pipe = pipeline("kind: loop_breaker\nparams: {limit: 1}\n", "regulation")
    past = tuple(Turn("x", "", "a", "x", False, ("regulation/it",)) for _ in range(2))
    assert pipe.begin(context("x", history=past)).fired == ()
