"""The stagnation kind."""

from __future__ import annotations

from typing import Any

from harnesslab.harness import Turn

TEXT = "kind: stagnation\nparams: {steps: 2, note: Stuck., suggest: 1, limit: 1}\n"


def test_note_when_nothing_new_was_seen(pipeline: Any, context: Any, history: Any) -> None:
    pipe = pipeline(TEXT, "regulation")
    past = history(("a", "1"), ("b", "2"), ("a", "3"))
    assert pipe.begin(context("b", history=past)).draft.after == ("Stuck.",)
    assert pipe.begin(context("c", history=past)).fired == ()
    assert pipe.begin(context("a", history=past[:2])).fired == ()
    with_list = pipe.begin(context("b", history=past, admissible=("2", "4", "5")))
    assert with_list.draft.after == ("Stuck.\nNot tried here yet: 4",)


def test_is_bounded(pipeline: Any, context: Any) -> None:
    past = tuple(Turn("a", "", "x", "a", False, ("regulation/it",)) for _ in range(3))
    assert pipeline(TEXT, "regulation").begin(context("a", history=past)).fired == ()
