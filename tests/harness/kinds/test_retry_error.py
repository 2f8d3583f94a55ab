"""The retry-error kind."""

from __future__ import annotations

from typing import Any

from harnesslab.harness import Turn

ERROR = Turn("ask", "Action: SELECT x", "SELECT x", "no such column: x")


def test_error_and_action_stand_together(pipeline: Any, context: Any) -> None:
    text = pipeline("kind: retry_error\n", "regulation").begin(context(ERROR.result, history=(ERROR,))).draft.after[0]
    assert text.split("\n")[:2] == ["Your last action failed: SELECT x", "The error: no such column: x"]
    assert text.endswith("Action: <your action>")


def test_unreadable_reply_counts_unless_told_otherwise(pipeline: Any, context: Any) -> None:
    past = (Turn("ask", "hm", None, "Say it so.", True),)
    assert "failed: hm" in pipeline("kind: retry_error\n", "regulation").begin(context(history=past)).draft.after[0]
    off = pipeline("kind: retry_error\nparams: {invalid: false}\n", "regulation")
    assert off.begin(context(history=past)).fired == ()


def test_silent_when_all_is_well_and_bounded(pipeline: Any, context: Any, history: Any) -> None:
    pipe = pipeline("kind: retry_error\nparams: {limit: 1, form: false}\n", "regulation")
    assert pipe.begin(context()).fired == ()
    assert pipe.begin(context(history=history(("a", "b"), last="3 rows"))).fired == ()
    fired = Turn("a", "", "b", "error", False, ("regulation/it",))
    assert pipe.begin(context(history=(fired,))).fired == ()
