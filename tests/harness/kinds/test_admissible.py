"""The admissible kind."""

from __future__ import annotations

from typing import Any


def test_list_is_bounded(pipeline: Any, context: Any) -> None:
    pipe = pipeline("kind: admissible\nparams: {max: 2}\n", "contract")
    now = context(admissible=("a", "b", "c"))
    assert pipe.begin(now).draft.after == ("Possible actions:\n- a\n- b\n(and 1 more)",)


def test_inline_without_what_was_tried(pipeline: Any, context: Any, history: Any) -> None:
    pipe = pipeline("kind: admissible\nparams: {inline: true, hide_tried: true, title: 'Now:'}\n", "contract")
    now = context("room", admissible=("a", "b"), history=history(("room", "a")))
    assert pipe.begin(now).draft.after == ("Now: b",)
    everything = context("room", admissible=("a",), history=history(("room", "a")))
    assert pipe.begin(everything).draft.after == ("Now: a",)


def test_silent_without_a_list(pipeline: Any, context: Any) -> None:
    assert pipeline("kind: admissible\n", "contract").begin(context()).fired == ()
