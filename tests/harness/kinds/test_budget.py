"""The budget kind."""

from __future__ import annotations

from typing import Any


def test_warns_at_the_end(pipeline: Any, context: Any) -> None:
    pipe = pipeline("kind: budget\nparams: {left: 2, note: '{left} left'}\n", "regulation")
    assert pipe.begin(context(step=7, budget=10)).fired == ()
    assert pipe.begin(context(step=8, budget=10)).draft.after == ("2 left",)
    assert pipe.begin(context(step=9, budget=10)).draft.after == ("1 left",)
