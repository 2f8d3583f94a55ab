"""The block kind."""

from __future__ import annotations

from typing import Any

from harnesslab.harness import Turn

TEXT = "kind: block\nparams: {pattern: '(?i)drop', message: Do not., limit: 2}\n"


def test_withholds_with_a_message(pipeline: Any, context: Any, reply: Any) -> None:
    proposal = pipeline(TEXT).choose(context(), [reply("Action: DROP TABLE x")]).proposal
    assert proposal.withheld and proposal.problem == "Do not." and proposal.action == "DROP TABLE x"
    assert not pipeline(TEXT).choose(context(), [reply("Action: look")]).proposal.withheld


def test_is_bounded(pipeline: Any, context: Any, reply: Any) -> None:
    past = tuple(Turn("a", "", "drop", "b", True, ("action/it",)) for _ in range(2))
    assert pipeline(TEXT).choose(context(history=past[:1]), [reply("Action: drop")]).proposal.withheld
    assert not pipeline(TEXT).choose(context(history=past), [reply("Action: drop")]).proposal.withheld
